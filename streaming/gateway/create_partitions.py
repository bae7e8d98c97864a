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
from streaming.gateway.mutation_quotas import MutationQuotas, Quota, QuotaExceeded, counted
from streaming.gateway.ports import ReplyBody
from streaming.wire import since
from streaming.wire.schema_codec import Body


class CreatePartitions:
    """Answers CreatePartitions (KafkaApis.handleCreatePartitionsRequest)."""

    def __init__(self, requests: AdminRequests, quotas: MutationQuotas) -> None:
        """Take who has requests decided, and how many partitions who may create."""
        self._requests = requests
        self._quotas = quotas

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided; a topic named twice is refused once."""
        times = Counter(topic["name"] for topic in call.body["topics"])
        by_name = {topic["name"]: topic for topic in call.body["topics"]}
        quota = await self._quotas.of(call, since.CREATE_PARTITIONS_QUOTA)
        results = await asyncio.gather(
            *(self._result(call, topic, times[name], quota) for name, topic in by_name.items())
        )
        return {"throttle_time_ms": quota.throttle_ms(), "results": results}

    async def _result(self, call: Call, topic: Body, times: int, quota: Quota) -> Body:
        reply = _refusal(topic, times)
        if reply is None:
            try:
                reply = await self._created(call, topic, quota)
            except QuotaExceeded as exceeded:
                reply = {"error": exceeded.error, "message": exceeded.message}
        message = reply.get("message")
        return {
            "name": topic["name"],
            "error_code": in_time(reply["error"], call.body),
            "error_message": message and shortened(message),
        }

    async def _created(self, call: Call, topic: Body, quota: Quota) -> ReplyBody:
        """Return the reply to one topic; of one that is not known nothing is counted."""
        name, dry = topic["name"], call.body["validate_only"]
        before = self._requests.view.partition_count(name)
        count = topic["count"] - before if before and not dry else 0
        kind, payload = EventKind.CREATE_PARTITIONS_REQUESTED, _payload(call, topic)
        return await counted(quota, count, lambda: self._requests.reply(kind, name, payload))


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
