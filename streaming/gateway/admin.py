"""What the APIs of administrators share."""

from __future__ import annotations

import asyncio
from typing import Any

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError
from streaming.gateway.cluster_requests import ClusterRequests
from streaming.gateway.ports import ClusterView, ReplyBody
from streaming.wire.schema_codec import Body

_PAUSE_S = 0.2
_TRIES_MORE = 10
"""For two seconds: a topic is read again within a few batches."""

_NAMELESS = "The name of a topic cannot be empty."


class AdminRequests:
    """Has requests about topics decided.

    The decision is awaited whatever the timeout of a request: that is for brokers to learn of the
    change, and Kafka looks at it once everything is checked and written (ZkAdminManager).

    What is refused with NOT_CONTROLLER while this node is the controller (the topic is being read
    again) is asked again here, for a while. Java's clients would ask for all topics of the request
    again, and hear that those that are done exist or do not; for elections they never do.
    """

    def __init__(self, view: ClusterView, requests: ClusterRequests) -> None:
        """Take the cluster, and what has requests decided."""
        self.view = view
        self._requests = requests

    def ready(self) -> bool:
        """Return whether requests can be decided here now."""
        return self.view.image() is not None and self.view.is_controller()

    async def reply(self, kind: EventKind, topic: str, payload: dict[str, Any]) -> ReplyBody:
        """Return the reply to an event about a topic, or {"error": code} when there is none.

        An event without a topic would go to the cluster machine, which knows of no topic.
        """
        if self.ready() and not topic:
            return {"error": ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, "message": _NAMELESS}
        return await self._decided(kind, topic, payload)

    async def reply_to_unknown(self, kind: EventKind, payload: dict[str, Any]) -> ReplyBody:
        """Return the cluster machine's reply to an event about a topic id that nobody knows, or
        {"error": code} when there is none.
        """
        return await self._decided(kind, "", payload | {"topic": ""})

    async def _decided(self, kind: EventKind, key: str, payload: dict[str, Any]) -> ReplyBody:
        reply = await self._once(kind, key, payload)
        for _ in range(_TRIES_MORE):
            if reply["error"] != ProtocolError.NOT_CONTROLLER or not self.ready():
                break
            await asyncio.sleep(_PAUSE_S)
            reply = await self._once(kind, key, payload)
        return reply

    async def _once(self, kind: EventKind, key: str, payload: dict[str, Any]) -> ReplyBody:
        if not self.ready():
            return {"error": ProtocolError.NOT_CONTROLLER}
        return await self._requests.reply(kind, key, payload)


def in_time(error: int, asked: Body) -> int:
    """Return the error that a change is answered with: REQUEST_TIMED_OUT in place of NONE when its
    timeout leaves brokers no time to learn of it. A dry run needs none.
    """
    waits = asked["timeout_ms"] > 0 or asked.get("validate_only", False)
    return error if waits or error != ProtocolError.NONE else ProtocolError.REQUEST_TIMED_OUT
