"""WriteTxnMarkers: transaction coordinators end transactions that committed offsets here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from state.groups.load import Epochs
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.batches import encode_marker
from streaming.offsets.leader import LeaderStopped, OffsetsLeader
from streaming.wire.schema_codec import Body

Settled = Callable[[int], Awaitable[bool]]
"""Waits until no commit of a producer is under way; False when that takes too long."""
Completed = Callable[[int, bool, list[int]], Awaitable[None]]
"""Has it known that a producer's transaction (id, committed) has ended in these partitions."""

_LOADED_WITHIN_S = 5.0
"""A marker waits that long for its partition; then it is sent again."""
_APPENDED_WITHIN_S = 25.0
"""A marker waits that long for the brokers in sync: less than its coordinator waits for an answer
(request.timeout.ms, 30 s), who else would send it again on another connection.
"""


class TxnMarkers:
    """Appends markers, and says so once all brokers in sync have them.

    What a transaction committed counts from then on (GroupCoordinator.scheduleHandleTxnCompletion).
    A partition takes none before it is loaded: machines would hear of the end of what they do not
    know of yet, and who comes late could not be told.
    """

    def __init__(
        self,
        leader: OffsetsLeader,
        settled: Settled,
        completed: Completed,
        now_ms: Callable[[], int],
    ) -> None:
        """Take where markers are appended, what they must come behind, and who is told."""
        self._leader = leader
        self._settled = settled
        self._completed = completed
        self._now_ms = now_ms

    async def handle(self, call: Call) -> Body:
        """Answer with an error for each partition."""
        markers = await asyncio.gather(*map(self._write, call.body["markers"]))
        return {"markers": list(markers)}

    async def _write(self, marker: dict[str, Any]) -> Body:
        topics, ended = [], []
        settled = await self._settled(marker["producer_id"])
        for topic in marker["topics"]:
            name, numbers = topic["name"], topic["partition_indexes"]
            errors = [int(ProtocolError.REQUEST_TIMED_OUT)] * len(numbers)  # it is sent again
            if settled:
                appending = (self._append(marker, name, number) for number in numbers)
                errors = await asyncio.gather(*appending)
            partitions = [
                {"partition_index": number, "error_code": error}
                for number, error in zip(numbers, errors, strict=True)
            ]
            ended += [one["partition_index"] for one in partitions if not one["error_code"]]
            topics.append({"name": name, "partitions": partitions})
        if ended:
            await self._completed(marker["producer_id"], marker["transaction_result"], ended)
        return {"producer_id": marker["producer_id"], "topics": topics}

    async def _append(self, marker: dict[str, Any], topic: str, partition: int) -> int:
        if topic != GROUP_TOPIC:
            return ProtocolError.NOT_LEADER_OR_FOLLOWER
        log = self._leader.logs.get(partition)
        if log is None or not await log.producers.loaded(_LOADED_WITHIN_S):
            return ProtocolError.NOT_LEADER_OR_FOLLOWER
        producer_id = marker["producer_id"]
        epochs = Epochs(marker["producer_epoch"], marker["coordinator_epoch"])
        if error := log.producers.marker_error(producer_id, epochs):
            return error
        batch = encode_marker(
            (producer_id, epochs.producer),
            epochs.coordinator,
            committed=marker["transaction_result"],
            timestamp_ms=self._now_ms(),
        )
        try:
            appended = self._leader.append(partition, batch)
            log.producers.ended(producer_id, epochs)
            async with asyncio.timeout(_APPENDED_WITHIN_S):
                await asyncio.shield(appended)
        except LeaderStopped:
            return ProtocolError.NOT_LEADER_OR_FOLLOWER
        except TimeoutError:
            return ProtocolError.REQUEST_TIMED_OUT
        return ProtocolError.NONE
