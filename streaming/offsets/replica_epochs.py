"""Answers OffsetsForLeaderEpoch of brokers that follow the partitions which this node leads.

Brokers with an inter-broker protocol below 2.7, and those of 2.7, name no leader epoch in Fetch:
each time that they are told of a leader epoch they first ask where the last one in their log ended,
and fetch nothing before they are told (AbstractFetcherThread.truncateToEpochEndOffsets). How far
their logs go they do not say by that, so they are asked.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from streaming.gateway.calls import Call
from streaming.gateway.followers import follower_that_asks_for_epochs
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.consumer_reads import ConsumerReads
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.follower_reports import FollowerReports, Report, Verdict
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.leader import OffsetsLeader
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

FindLogEnds = Callable[[int, Mapping[int, int]], Awaitable[Mapping[int, int]]]
"""Returns where a broker's logs end, by partition, of those partitions (number: leader epoch) that
it follows under that epoch; raises HistoryUnreadable.
"""

WAIT_S = 0.5
"""The partitions that a broker follows already stand still while it waits; it comes again after
replica.fetch.backoff.ms (1 s).
"""


class ReplicaEpochs:
    """What a broker is told of where its leader epochs ended."""

    def __init__(
        self,
        leader: OffsetsLeader,
        reports: FollowerReports,
        find_log_ends: FindLogEnds,
        consumers: ConsumerReads,
        *,
        wait_s: float = WAIT_S,
    ) -> None:
        """Take what is led, who judges followers' logs, how far these go, and who reads for
        consumers; wait_s: for how long a broker waits for others to say how far they are.
        """
        self._consumers = consumers
        self._wait_s = wait_s
        self._leader = leader
        self._reports = reports
        self._find_log_ends = find_log_ends

    async def handle(self, call: Call) -> Body:
        """Answer followers; consumers are answered by who reads for them."""
        broker_id = follower_that_asks_for_epochs(call.header, call.body)
        if broker_id is None:
            return await self._consumers.offsets_for_leader_epoch(call)
        topics = call.body["topics"]
        reports = await self._reports_of(topics, broker_id)
        verdicts = await self._reports.take(broker_id, reports)
        if all(one.undecided for one in verdicts):
            await self._leader.changed(self._wait_s)
            verdicts = self._reports.again(broker_id, reports)
        said = map(_said, reports, verdicts)
        return {
            "topics": [
                {
                    "topic": topic["topic"],
                    "partitions": [
                        {"partition": one["partition"]} | next(said) for one in topic["partitions"]
                    ],
                }
                for topic in topics
            ]
        }

    async def _reports_of(self, topics: Sequence[Body], broker_id: int) -> list[Report]:
        """Return what a broker says of its logs by asking, in the order of partitions."""
        asked = [
            (
                one,
                self._leader.logs.get(one["partition"]) if topic["topic"] == GROUP_TOPIC else None,
            )
            for topic in topics
            for one in topic["partitions"]
        ]
        followed = {
            log.partition: log.epoch
            for one, log in asked
            if log is not None and log.epoch == one["current_leader_epoch"]
        }
        ends = await self._ends(broker_id, followed)
        return [
            Report(
                log,
                one["current_leader_epoch"],
                one["leader_epoch"],
                UNKNOWN if log is None else ends.get(log.partition, UNKNOWN),
            )
            for one, log in asked
        ]

    async def _ends(self, broker_id: int, followed: Mapping[int, int]) -> Mapping[int, int]:
        """Return what the broker says now, nothing when that may be another start of it than the
        one that asked.
        """
        before = self._leader.broker_epoch(broker_id)
        try:
            ends = await self._find_log_ends(broker_id, followed) if followed else {}
        except HistoryUnreadable as failure:
            logger.warning("how far the logs of broker %d go: %s", broker_id, failure)
            return {}
        return ends if self._leader.broker_epoch(broker_id) == before else {}


def _said(report: Report, verdict: Verdict) -> Body:
    """Return the answer to a report: all that the broker has is ours, unless its log parts."""
    if verdict.error:
        return {"error_code": int(verdict.error)}
    shared = verdict.parts_at or EpochEnd(report.last_epoch, report.end_offset)
    return {"error_code": 0, "leader_epoch": shared.epoch, "end_offset": shared.end_offset}
