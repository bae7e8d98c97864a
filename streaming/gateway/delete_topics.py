"""DeleteTopics: by name or by id, one event per topic."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError
from state.topic_ids import NO_TOPIC_ID, topic_id_from_text, topic_id_to_text
from streaming.gateway.admin import AdminRequests, in_time
from streaming.gateway.calls import Call
from streaming.gateway.mutation_quotas import MutationQuotas, Quota, QuotaExceeded, counted
from streaming.gateway.ports import ReplyBody
from streaming.gateway.topics_by_id import name_of, reply_by_id
from streaming.wire import since
from streaming.wire.schema_codec import Body

_DISABLED_SINCE = 3
_KIND = EventKind.DELETE_TOPIC_REQUESTED
_BOTH = "Topic name and topic ID can not both be specified."
_MESSAGES: Mapping[int, str] = {
    ProtocolError.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
    ProtocolError.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ProtocolError.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}

_Named = tuple[str | None, bytes]
"""A topic's name, None when the client gave its id, and the id, zero when it gave the name."""


class DeleteTopics:
    """Answers DeleteTopics (KafkaApis.handleDeleteTopicsRequest).

    A topic is answered for when its mark is written: from then on its deletion cannot be forgotten,
    and the name is free when it is done.
    """

    def __init__(self, requests: AdminRequests, quotas: MutationQuotas) -> None:
        """Take who has requests decided, and how many partitions who may delete."""
        self._requests = requests
        self._quotas = quotas

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided, in the order asked; one that is asked for twice is
        decided once.
        """
        asked = _asked(call)
        if any(name is not None and topic_id != NO_TOPIC_ID for name, topic_id in asked):
            return {
                "responses": [_result(one, ProtocolError.INVALID_REQUEST, _BOTH) for one in asked]
            }
        distinct = list(dict.fromkeys(asked))
        quota = await self._quotas.of(call, since.DELETE_TOPICS_QUOTA)
        results = await asyncio.gather(*(self._deleted(call, one, quota) for one in distinct))
        by_topic = dict(zip(distinct, results, strict=True))
        responses = [by_topic[one] for one in asked]
        return {"throttle_time_ms": quota.throttle_ms(), "responses": responses}

    async def _deleted(self, call: Call, asked: _Named, quota: Quota) -> Body:
        if not self._requests.ready():
            return _result(asked, ProtocolError.NOT_CONTROLLER)
        known = asked[0] if asked[0] is not None else self._name(asked[1])
        count = self._requests.view.partition_count(known) if known else 0
        try:
            return await counted(quota, count, lambda: self._delete(call, asked), "error_code")
        except QuotaExceeded as exceeded:
            return _result(asked, exceeded.error, exceeded.message)

    async def _delete(self, call: Call, asked: _Named) -> Body:
        name, topic_id = asked
        if name is None:
            found, reply = await self._delete_by_id(topic_id)
            name = found or None
        else:
            topic_id = self._id(name)
            reply = await self._requests.reply(_KIND, name, {"topic": name, "topic_id": None})
        return _result((name, topic_id), _error(call, reply), reply.get("message"))

    async def _delete_by_id(self, topic_id: bytes) -> tuple[str, ReplyBody]:
        payload = {"topic_id": topic_id_to_text(topic_id)}

        async def ask(name: str) -> ReplyBody:
            if name:
                return await self._requests.reply(_KIND, name, payload | {"topic": name})
            if topic_id == NO_TOPIC_ID:
                return {"error": ProtocolError.UNKNOWN_TOPIC_ID}
            return await self._requests.reply_to_unknown(_KIND, payload)

        return await reply_by_id(
            self._name(topic_id),
            ask,
            is_unknown=lambda reply: bool(reply["error"] == ProtocolError.UNKNOWN_TOPIC_ID),
            find_name=lambda: self._name(topic_id),
        )

    def _name(self, topic_id: bytes) -> str:
        return name_of(self._requests.view.image(), topic_id)

    def _id(self, name: str) -> bytes:
        image = self._requests.view.image()
        return topic_id_from_text(None if image is None else image.topic_ids.get(name))


def _asked(call: Call) -> list[_Named]:
    if call.version < since.DELETE_TOPICS_IDS:
        return [(name, NO_TOPIC_ID) for name in call.body["topic_names"]]
    return [
        (topic["name"], topic["topic_id"].bytes if topic["topic_id"] else NO_TOPIC_ID)
        for topic in call.body["topics"]
    ]


def _error(call: Call, reply: dict[str, Any]) -> int:
    """Return the error; older clients do not know of TOPIC_DELETION_DISABLED."""
    error = in_time(reply["error"], call.body)
    if error == ProtocolError.TOPIC_DELETION_DISABLED and call.version < _DISABLED_SINCE:
        return ProtocolError.INVALID_REQUEST
    return error


def _result(asked: _Named, error: int, message: str | None = None) -> Body:
    name, topic_id = asked
    return {
        "name": name,
        "topic_id": uuid.UUID(bytes=topic_id) if topic_id != NO_TOPIC_ID else None,
        "error_code": error,
        "error_message": message or _MESSAGES.get(error),
    }
