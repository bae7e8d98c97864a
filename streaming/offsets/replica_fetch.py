"""Answers Fetch of brokers that follow the partitions which this node leads.

An answer names every partition that was asked for, also those without news: without a fetch session
a broker takes anything else for broken and asks again at once. It waits until there is news, and no
longer than the broker says. Source: ReplicaManager.fetchMessages, Partition.readRecords.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import repeat

from state.protocol_errors import ProtocolError
from streaming.gateway import not_leader
from streaming.gateway.calls import Call
from streaming.gateway.followers import follower_that_fetches
from streaming.gateway.topics_by_id import fetched_topic
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.consumer_reads import ConsumerReads, by_topic
from streaming.offsets.follower_reports import FollowerReports, Report, Verdict
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import PartitionLog
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

ReadHistory = Callable[[int, int, int], Awaitable[bytes]]
"""Returns bytes of a partition from an offset on, about so many; b"" when they cannot be had."""

_FOLLOWS_SINCE = 9
"""Older followers do not say under which leader epoch they fetch; of those with an inter-broker
protocol below 2.1-IV2.
"""

_LATER = int(ProtocolError.UNKNOWN_LEADER_EPOCH)
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class _Asked:
    """A partition that a broker asks for, and what it says of its log by that."""

    request: Body
    report: Report


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
        reports: FollowerReports,
        read_history: ReadHistory,
        consumers: ConsumerReads,
    ) -> None:
        """Take what is led, how topic ids are known, who judges followers' logs, where older
        records are read, and who reads for consumers.
        """
        self._consumers = consumers
        self._too_old: set[int] = set()
        self._leader = leader
        self._image = image
        self._reports = reports
        self._read_history = read_history

    async def handle(self, call: Call) -> Body:
        """Answer followers; consumers are answered by who reads for them."""
        broker_id = follower_that_fetches(call.body)
        if broker_id is None:
            return await self._consumers.fetch(call)
        return await self._follow(call, broker_id)

    async def _follow(self, call: Call, broker_id: int) -> Body:
        """Answer when there is news for the broker, or max_wait_ms is over."""
        if call.version < _FOLLOWS_SINCE:
            if broker_id not in self._too_old:
                self._too_old.add(broker_id)
                text = "broker %d cannot follow: its inter.broker.protocol is below 2.1"
                logger.error(text, broker_id)
            return await not_leader.fetch(call)
        asked = self._asked(call)
        reports = [one.report for one in asked]
        verdicts = await self._reports.take(broker_id, reports)
        answers = [*map(self._answer, asked, verdicts, repeat(broker_id))]
        if not any(one.news for one in answers):
            await self._leader.changed(call.body["max_wait_ms"] / 1000)
            verdicts = self._reports.again(broker_id, reports)
            answers = [*map(self._answer, asked, verdicts, repeat(broker_id))]
        await asyncio.gather(*map(self._add_older, asked, answers))
        bodies = [answer.body for answer in answers]
        return {"responses": by_topic(call.body["topics"], bodies)}

    def _asked(self, call: Call) -> list[_Asked]:
        found = []
        for topic in call.body["topics"]:
            led = fetched_topic(call, topic, self._image()) == GROUP_TOPIC
            for request in topic["partitions"]:
                report = Report(
                    self._leader.logs.get(request["partition"]) if led else None,
                    request["current_leader_epoch"],
                    request["last_fetched_epoch"],
                    request["fetch_offset"],
                )
                found.append(_Asked(request, report))
        return found

    def _answer(self, asked: _Asked, verdict: Verdict, broker_id: int) -> _Answer:
        request, log = asked.request, asked.report.log
        if verdict.error or log is None:
            failed = _failed(request["partition"], int(verdict.error))
            return _Answer(failed, news=not verdict.undecided)
        body = _read(request["partition"], log)
        if verdict.parts_at is not None:
            body["diverging_epoch"] = {
                "epoch": verdict.parts_at.epoch,
                "end_offset": verdict.parts_at.end_offset,
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
