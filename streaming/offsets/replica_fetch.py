"""Answers Fetch of brokers that follow the partitions which this node leads.

An answer names every partition that was asked for, also those without news: without a fetch session
a broker takes anything else for broken and asks again at once. It waits until there is news, and no
longer than the broker says. A broker whose log ends with an epoch before ours may have what nobody
else has: where that epoch ended, another one is asked. Source: ReplicaManager.fetchMessages,
Partition.readRecords.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.gateway import not_leader
from streaming.gateway.calls import Call
from streaming.gateway.topics_by_id import name_of
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import UNKNOWN, EpochEnd, PartitionLog
from streaming.wire import since
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

ReadHistory = Callable[[int, int, int], Awaitable[bytes]]
"""Returns bytes of a partition from an offset on, about so many; b"" when they cannot be had."""

FindEpochEnd = Callable[[int, int], Awaitable[EpochEnd]]
"""Returns the newest epoch of a partition that is not after the given one, and where it ended;
raises HistoryUnreadable.
"""

_LAST_EPOCHS_SINCE = 12
_NOT_LED = int(ProtocolError.NOT_LEADER_OR_FOLLOWER)
_LATER = int(ProtocolError.UNKNOWN_LEADER_EPOCH)
_NOTHING = -1
_CONSUMER = -1


@dataclass(frozen=True, slots=True)
class _Asked:
    """A partition that a broker asks for; log is None when this node does not lead it. follows:
    whether the broker has a replica, and asks the leader of the present epoch; in_sync: whether the
    log cannot begin without it.
    """

    topic: Body
    request: Body
    log: PartitionLog | None
    follows: bool
    in_sync: bool


@dataclass(slots=True)
class _Answer:
    """What it gets; older: the offset from which records must be read elsewhere, None for none.
    news: there is no need to wait.
    """

    body: Body
    news: bool = True
    older: int | None = None


class ReplicaFetch:
    """What a broker gets when it fetches from this node as a follower."""

    def __init__(
        self,
        leader: OffsetsLeader,
        image: Callable[[], ClusterImage | None],
        read_history: ReadHistory,
        find_epoch_end: FindEpochEnd,
    ) -> None:
        """Take what is led, how topic ids are known, and where older records are read and older
        epochs known.
        """
        self._leader = leader
        self._image = image
        self._read_history = read_history
        self._find_epoch_end = find_epoch_end
        self._too_old: set[int] = set()

    async def handle(self, call: Call) -> Body:
        """Answer followers; consumers get NOT_LEADER_OR_FOLLOWER, as they may read none of it."""
        state = call.body["replica_state"]
        replica = call.body["replica_id"] if state is None else state["replica_id"]
        if replica > _CONSUMER:
            return await self._follow(call, replica)
        return await not_leader.fetch(call)

    async def _follow(self, call: Call, broker_id: int) -> Body:
        """Answer when there is news for the broker, or max_wait_ms is over."""
        if call.version < _LAST_EPOCHS_SINCE and broker_id not in self._too_old:
            self._too_old.add(broker_id)
            logger.error(
                "broker %d cannot follow: its inter.broker.protocol is below 2.8", broker_id
            )
        asked = self._take(call, broker_id)
        if lacking := [
            self._learn_end(one.log, one.request["last_fetched_epoch"], one.log.base)
            for one in asked
            if one.log is not None and one.log.base is not None and one.follows
            if one.log.lacks_end_of(one.request["last_fetched_epoch"])
        ]:
            await asyncio.gather(*lacking)
            asked = self._take(call, broker_id)
        answers = [self._answer(one, broker_id) for one in asked]
        if not any(one.news for one in answers):
            await self._leader.changed(call.body["max_wait_ms"] / 1000)
            answers = [self._answer(one, broker_id) for one in asked]
        await asyncio.gather(*map(self._add_older, asked, answers))
        bodies = [answer.body for answer in answers]
        return {"responses": _by_topic(call.body["topics"], bodies)}

    def _take(self, call: Call, broker_id: int) -> list[_Asked]:
        """Return what is asked for, once it is noted how far the broker is."""
        asked = self._asked(call, broker_id)
        for one in asked:
            self._take_position(one, broker_id)
        return asked

    def _asked(self, call: Call, broker_id: int) -> list[_Asked]:
        found = []
        for topic in call.body["topics"]:
            led = self._name(call, topic) == GROUP_TOPIC and call.version >= _LAST_EPOCHS_SINCE
            for request in topic["partitions"]:
                log = self._leader.logs.get(request["partition"]) if led else None
                facts = None if log is None else self._leader.facts.get(log.partition)
                current = log is not None and request["current_leader_epoch"] == log.epoch
                follows = current and facts is not None and broker_id in facts.replicas
                in_sync = facts is not None and broker_id in facts.in_sync
                found.append(_Asked(topic, request, log, follows, in_sync))
        return found

    def _name(self, call: Call, topic: Body) -> str:
        if call.version < since.FETCH_TOPIC_IDS:
            return str(topic["topic"])
        topic_id = topic["topic_id"]
        return "" if topic_id is None else name_of(self._image(), topic_id.bytes)

    def _take_position(self, asked: _Asked, broker_id: int) -> None:
        """Take how far the broker is, if its log is a part of ours."""
        log, request = asked.log, asked.request
        if log is None or not asked.follows:
            return
        epoch, position = request["last_fetched_epoch"], request["fetch_offset"]
        diverging = log.divergence(epoch, position)
        if log.begun and log.lacks_end_of(epoch):
            log.diverged(broker_id, UNKNOWN)
        elif log.begun and diverging is not None:
            log.diverged(broker_id, diverging.end_offset)
        else:
            self._leader.fetched(log, broker_id, position, epoch)

    async def _learn_end(self, log: PartitionLog, last_epoch: int, base: EpochEnd) -> None:
        try:
            end = await self._find_epoch_end(log.partition, last_epoch)
        except HistoryUnreadable as failure:
            where = f"epoch {last_epoch} of partition {log.partition}"
            logger.warning("where %s ended: %s", where, failure)
        else:
            log.learn_end_of(last_epoch, end, base)

    def _answer(self, asked: _Asked, broker_id: int) -> _Answer:
        log, request = asked.log, asked.request
        number = request["partition"]
        if log is None:
            return _Answer(_failed(number, _NOT_LED))
        if request["current_leader_epoch"] != log.epoch:
            fenced = request["current_leader_epoch"] < log.epoch
            return _Answer(
                _failed(number, int(ProtocolError.FENCED_LEADER_EPOCH) if fenced else _LATER)
            )
        last_epoch, diverging = request["last_fetched_epoch"], None
        if log.begun or asked.in_sync:
            diverging = log.divergence(last_epoch, request["fetch_offset"])
        if log.lacks_end_of(last_epoch) or (diverging is None and not log.begun):
            return _Answer(_failed(number, _LATER), news=False)
        body = _read(number, log)
        if diverging is not None:
            body["diverging_epoch"] = {
                "epoch": diverging.epoch,
                "end_offset": diverging.end_offset,
            }
            return _Answer(body)
        if request["fetch_offset"] < log.start:
            return _Answer(body, older=request["fetch_offset"])
        body["records"] = log.read(request["fetch_offset"], request["partition_max_bytes"])
        return _Answer(body, log.has_news_for(broker_id, body["records"]))

    async def _add_older(self, asked: _Asked, answer: _Answer) -> None:
        if answer.older is None:
            return
        number, limit = asked.request["partition"], asked.request["partition_max_bytes"]
        records = await self._read_history(number, answer.older, limit)
        answer.body = {**answer.body, "records": records} if records else _failed(number, _LATER)


def _read(partition: int, log: PartitionLog) -> Body:
    # The log's start is told to be 0: a follower never has to cut off what it has at the front.
    return {
        "partition_index": partition,
        "error_code": ProtocolError.NONE,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.high_watermark,
        "log_start_offset": 0,
        "records": b"",
    }


def _failed(partition: int, error: int) -> Body:
    return {
        "partition_index": partition,
        "error_code": error,
        "high_watermark": _NOTHING,
        "records": b"",
    }


def _by_topic(topics: list[Body], answers: list[Body]) -> list[dict[str, Any]]:
    rest = iter(answers)
    return [
        {
            "topic": topic["topic"],
            "topic_id": topic["topic_id"],
            "partitions": [next(rest) for _ in topic["partitions"]],
        }
        for topic in topics
    ]
