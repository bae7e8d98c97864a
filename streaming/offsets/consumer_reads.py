"""Answers consumers of the partitions that this node leads: monitors of lag read commits there.

What is safe, and no more, is read for them from a broker in sync that follows us; nothing of it is
here. Source: KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages, handleListOffsetRequest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.topics_by_id import fetched_topic
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import PartitionLog
from streaming.wire.partition_reads import EARLIEST, LATEST
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

ANSWER_MAX_BYTES = 4 * 1024 * 1024
"""What is read for one request; the rest is asked for again."""

_OUT_OF_RANGE = int(ProtocolError.OFFSET_OUT_OF_RANGE)
_NOT_LED = int(ProtocolError.NOT_LEADER_OR_FOLLOWER)
_NEWER_EPOCH = int(ProtocolError.UNKNOWN_LEADER_EPOCH)
_NOTHING = -1
_ANY_EPOCH = -1
_READ_COMMITTED = 1


class ReadsFollowers(Protocol):
    """Reads from brokers in sync: streaming.offsets.history. Raises HistoryUnreadable."""

    async def is_followed(self, partition: int, epoch: int) -> bool:
        """Return whether all of them follow a partition under a leader epoch."""

    async def fetched(self, partition: int, offset: int, max_bytes: int, isolation: int) -> Body:
        """Return what one says to a consumer that fetches from an offset."""

    async def offset_at(self, partition: int, timestamp: int) -> Body:
        """Return what one says of the first record of a time, or later."""


class ConsumerReads:
    """What a consumer gets of the partitions that are led."""

    def __init__(
        self,
        leader: OffsetsLeader,
        image: Callable[[], ClusterImage | None],
        followers: ReadsFollowers,
    ) -> None:
        """Take what is led, how topic ids are known, and what reads from followers."""
        self._leader = leader
        self._image = image
        self._followers = followers

    async def fetch(self, call: Call) -> Body:
        """Answer with records once there are any, or when max_wait_ms is over."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + call.body["max_wait_ms"] / 1000
        topics, isolation = call.body["topics"], call.body["isolation_level"]
        asked = [
            (fetched_topic(call, topic, self._image()), one)
            for topic in topics
            for one in topic["partitions"]
        ]
        while True:
            budget = _Budget(min(call.body["max_bytes"], ANSWER_MAX_BYTES))
            read = [await self._read(name, one, isolation, budget) for name, one in asked]
            news = any(one["error_code"] or one["records"] for one in read)
            left_s = until_s - now_s()
            if news or left_s <= 0:
                return {"responses": by_topic(topics, read)}
            await self._leader.changed(left_s)

    async def list_offsets(self, call: Call) -> Body:
        """Answer where partitions begin, where what is safe ends, and what is of a time or later;
        other questions get UNSUPPORTED_VERSION.
        """
        isolation = call.body["isolation_level"]
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [
                        {"partition_index": one["partition_index"]}
                        | await self._offset(topic["name"], one, isolation)
                        for one in topic["partitions"]
                    ],
                }
                for topic in call.body["topics"]
            ]
        }

    async def offsets_for_leader_epoch(self, call: Call) -> Body:
        """Answer that all which is safe stands: no more was read from us, and it is never cut off.
        What was read under a newer leader than we are that one knows.
        """
        return {
            "topics": [
                {
                    "topic": topic["topic"],
                    "partitions": [
                        {"partition": one["partition"]} | self._epoch_end(topic["topic"], one)
                        for one in topic["partitions"]
                    ],
                }
                for topic in call.body["topics"]
            ]
        }

    def _led(self, topic: str, partition: int, epoch: int) -> PartitionLog | int:
        """Return the log of a partition that is led under this leader epoch, or an error."""
        log = self._leader.logs.get(partition) if topic == GROUP_TOPIC else None
        if log is None or not log.begun:
            return _NOT_LED
        if epoch in (_ANY_EPOCH, log.epoch):
            return log
        older = epoch < log.epoch
        return int(ProtocolError.FENCED_LEADER_EPOCH) if older else _NEWER_EPOCH

    async def _read(self, topic: str, asked: Body, isolation: int, budget: _Budget) -> Body:
        number, offset = asked["partition"], asked["fetch_offset"]
        log = self._led(topic, number, asked["current_leader_epoch"])
        if isinstance(log, int):
            return _said(number, error_code=log)
        if offset > log.end:
            return _said(number, error_code=await self._beyond_end(log))
        if offset >= log.high_watermark or budget.left <= 0:
            safe = log.high_watermark
            return _said(number, high_watermark=safe, last_stable_offset=safe)
        wanted = min(asked["partition_max_bytes"], budget.left)
        try:
            found = await self._followers.fetched(number, offset, wanted, isolation)
        except HistoryUnreadable as failure:
            logger.warning("partition %d for a consumer: %s", number, failure)
            return _said(number, error_code=_NOT_LED)
        records = found["records"] or b""
        budget.left -= len(records)
        names = ("error_code", "last_stable_offset", "log_start_offset", "aborted_transactions")
        said = {name: found[name] for name in names}
        return _said(number, high_watermark=log.high_watermark, records=records, **said)

    async def _beyond_end(self, log: PartitionLog) -> int:
        """Return what is said of an offset that our log does not have. While this process stood
        still another one may have led; a client that was told more there would read all again, or
        nothing, if it heard from us that its offset is none.
        """
        try:
            if await self._followers.is_followed(log.partition, log.epoch):
                return _OUT_OF_RANGE
        except HistoryUnreadable as failure:
            logger.warning("partition %d for a consumer: %s", log.partition, failure)
        return _NOT_LED

    async def _offset(self, topic: str, asked: Body, isolation: int) -> Body:
        log = self._led(topic, asked["partition_index"], asked["current_leader_epoch"])
        if isinstance(log, int):
            return {"error_code": log}
        timestamp = asked["timestamp"]
        if timestamp < EARLIEST:
            return {"error_code": int(ProtocolError.UNSUPPORTED_VERSION)}
        try:
            if timestamp == LATEST:
                end = await self._safe_end(log, isolation)
                return {"error_code": 0, "offset": end, "leader_epoch": log.epoch}
            found = await self._followers.offset_at(log.partition, timestamp)
        except HistoryUnreadable as failure:
            logger.warning("offsets of partition %d: %s", log.partition, failure)
            return {"error_code": _NOT_LED}
        if timestamp != EARLIEST and found["offset"] >= log.high_watermark:
            return {"error_code": 0}
        return {name: found[name] for name in ("error_code", "offset", "timestamp", "leader_epoch")}

    async def _safe_end(self, log: PartitionLog, isolation: int) -> int:
        """Return where that ends which a consumer may read."""
        safe = log.high_watermark
        if isolation != _READ_COMMITTED or safe == 0:
            return safe
        found = await self._followers.fetched(log.partition, safe - 1, 1, isolation)
        return min(safe, int(found["last_stable_offset"]))

    def _epoch_end(self, topic: str, asked: Body) -> Body:
        log = self._led(topic, asked["partition"], asked["current_leader_epoch"])
        if isinstance(log, int):
            return {"error_code": log}
        epoch = asked["leader_epoch"]
        if epoch > log.epoch:
            return {"error_code": _NEWER_EPOCH}
        return {"error_code": 0, "leader_epoch": epoch, "end_offset": log.high_watermark}


@dataclass(slots=True)
class _Budget:
    """How many bytes an answer may still have."""

    left: int


def by_topic(topics: Sequence[Body], answers: Iterable[Body]) -> list[Body]:
    """Return what a Fetch is answered, from what is said of each partition, in their order."""
    rest = iter(answers)
    return [
        {
            "topic": topic["topic"],
            "topic_id": topic["topic_id"],
            "partitions": [next(rest) for _ in topic["partitions"]],
        }
        for topic in topics
    ]


def _said(partition: int, **said: Any) -> Body:
    unsaid = dict.fromkeys(("high_watermark", "last_stable_offset", "log_start_offset"), _NOTHING)
    return {"partition_index": partition, "error_code": 0, "records": b"", **unsaid, **said}
