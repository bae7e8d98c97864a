"""CreatePartitions: one event per topic."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from state.event_kinds import EventKind
from state.limits import PARTITIONS_MAX
from state.protocol_errors import ProtocolError
from streaming.gateway.admin import AdminRequests, in_time
from streaming.gateway.calls import Call, shortened
from streaming.wire.schema_codec import Body


class CreatePartitions:
    """Answers CreatePartitions (KafkaApis.handleCreatePartitionsRequest)."""

    def __init__(self, requests: AdminRequests) -> None:
        """Take who has requests decided."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided; a topic named twice is refused once."""
        times = Counter(topic["name"] for topic in call.body["topics"])
        by_name = {topic["name"]: topic for topic in call.body["topics"]}
        results = await asyncio.gather(
            *(self._result(call, topic, times[name]) for name, topic in by_name.items())
        )
        return {"results": results}

    async def _result(self, call: Call, topic: Body, times: int) -> Body:
        reply = _refusal(topic, times)
        if reply is None:
            payload = _payload(call, topic)
            kind = EventKind.CREATE_PARTITIONS_REQUESTED
            reply = await self._requests.reply(kind, topic["name"], payload)
        message = reply.get("message")
        return {
            "name": topic["name"],
            "error_code": in_time(reply["error"], call.body),
            "error_message": message and shortened(message),
        }


def _refusal(topic: Body, times: int) -> dict[str, Any] | None:
    if times > 1:
        return {"error": ProtocolError.INVALID_REQUEST, "message": "Duplicate topic in request."}
    if topic["count"] > PARTITIONS_MAX:
        message = f"{topic['count']} partitions are more than the {PARTITIONS_MAX} a topic may have"
        return {"error": ProtocolError.INVALID_PARTITIONS, "message": message}
    return None


def _payload(call: Call, topic: Body) -> dict[str, Any]:
    listed = topic["assignments"]
    return {
        "topic": topic["name"],
        "partitions": topic["count"],
        "assignment": None if listed is None else [entry["broker_ids"] for entry in listed],
        "validate_only": call.body["validate_only"],
    }
