"""What brokers say of the logs with which they follow this node, and what becomes of these.

A log whose last leader epoch ended earlier here is cut off there. Where an epoch before ours ended,
a broker in sync is asked that has all of it; brokers that cannot be asked that (inter-broker
protocol below 2.7) are asked for their own high watermark instead: what was acknowledged is a part
of each log in sync. Source: Partition.readRecords, AbstractFetcherThread.getOffsetTruncationState.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from state.protocol_errors import ProtocolError
from streaming.offsets.follower import UNKNOWN, EpochEnd, Follower
from streaming.offsets.history_connection import HistoryUnreadable
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.partition_log import PartitionLog

logger = logging.getLogger(__name__)

FindEpochEnd = Callable[[int, int], Awaitable[EpochEnd | None]]
"""Returns the newest epoch of a partition that is not after the given one, and where it ended, None
when all epochs there are older; raises HistoryUnreadable.
"""

FindCommitted = Callable[[int, int, int], Awaitable[int]]
"""Returns a broker's high watermark of a partition whose log ends there at an offset; raises
HistoryUnreadable.
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What a broker says of a partition's log: under which leader epoch it follows, and the end of
    its log, with the leader epoch of what stands before that. log: ours, None when it is not led;
    end_offset: UNKNOWN when it cannot be found out.
    """

    log: PartitionLog | None
    current_leader_epoch: int
    last_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a report comes to: an error, or where the broker's log parts from ours, None if it is a
    part of it. undecided: the error may be over soon.
    """

    error: ProtocolError = ProtocolError.NONE
    parts_at: EpochEnd | None = None
    undecided: bool = False


_UNDECIDED = Verdict(ProtocolError.UNKNOWN_LEADER_EPOCH, undecided=True)


class FollowerReports:
    """Takes reports, learns what is needed to judge them, and judges them."""

    def __init__(
        self,
        leader: OffsetsLeader,
        find_epoch_end: FindEpochEnd,
        find_committed: FindCommitted | None,
    ) -> None:
        """Take what is led. find_committed: None when brokers can say where epochs ended."""
        self._leader = leader
        self._find_epoch_end = find_epoch_end
        self._find_committed = find_committed

    async def take(self, broker_id: int, reports: Sequence[Report]) -> None:
        """Note how far a broker is in each partition whose log shows a part of ours."""
        self._note_all(broker_id, reports)
        if unclear := [one for one in reports if self._is_to_learn(broker_id, one)]:
            await asyncio.gather(*(self._learn(broker_id, one) for one in unclear))
            self._note_all(broker_id, reports)

    def verdict(self, broker_id: int, report: Report) -> Verdict:
        """Return what a report comes to now, for the broker to be told."""
        log = report.log
        if log is None:
            return Verdict(ProtocolError.NOT_LEADER_OR_FOLLOWER)
        if report.current_leader_epoch < log.epoch:
            return Verdict(ProtocolError.FENCED_LEADER_EPOCH)
        if report.current_leader_epoch > log.epoch:
            return Verdict(ProtocolError.UNKNOWN_LEADER_EPOCH)
        if report.end_offset == UNKNOWN or self._lacks_end(broker_id, report):
            return _UNDECIDED
        facts = self._leader.facts.get(log.partition)
        counts = log.begun or (facts is not None and broker_id in facts.in_sync)
        parts_at = self._divergence(broker_id, log, report) if counts else None
        if parts_at is None:
            return Verdict() if log.begun else _UNDECIDED
        if self._follows(broker_id, log, report):
            log.diverged(broker_id, parts_at.end_offset)
        # A broker takes no notice of an epoch of -1, and would ask again at once.
        return _UNDECIDED if parts_at.epoch == UNKNOWN else Verdict(parts_at=parts_at)

    def _note_all(self, broker_id: int, reports: Sequence[Report]) -> None:
        for report in reports:
            log = report.log
            if log is not None and self._follows(broker_id, log, report):
                self._note(broker_id, log, report)

    def _note(self, broker_id: int, log: PartitionLog, report: Report) -> None:
        diverging = self._divergence(broker_id, log, report)
        if log.begun and self._lacks_end(broker_id, report):
            log.diverged(broker_id, UNKNOWN)
        elif log.begun and diverging is not None:
            log.diverged(broker_id, diverging.end_offset)
        else:
            self._leader.fetched(log, broker_id, report.end_offset, report.last_epoch)

    def _follows(self, broker_id: int, log: PartitionLog, report: Report) -> bool:
        """Return whether the broker has a replica, and a log that it shows to the leader of the
        present epoch.
        """
        facts = self._leader.facts.get(log.partition)
        current = report.current_leader_epoch == log.epoch and report.end_offset != UNKNOWN
        return current and facts is not None and broker_id in facts.replicas

    def _divergence(self, broker_id: int, log: PartitionLog, report: Report) -> EpochEnd | None:
        committed = self._committed(broker_id, log, report)
        return log.divergence(report.last_epoch, report.end_offset, committed)

    def _is_to_learn(self, broker_id: int, report: Report) -> bool:
        """Return whether nobody has said where the log parts. What a broker said of its own log
        before it went on is too little now.
        """
        log = report.log
        if log is None or not self._follows(broker_id, log, report):
            return False
        sure = log.follower(broker_id).all_committed(report.end_offset)
        return log.lacks_end_of(report.last_epoch, sure)

    def _lacks_end(self, broker_id: int, report: Report) -> bool:
        log = report.log
        if log is None or not self._follows(broker_id, log, report):
            return False
        return log.lacks_end_of(report.last_epoch, self._committed(broker_id, log, report))

    def _committed(self, broker_id: int, log: PartitionLog, report: Report) -> int:
        """Return up to where the broker's log is surely a part of ours, UNKNOWN while it may not
        cut off the rest: in the ISR, and asked into it, it may have acknowledged that.
        """
        follower, facts = log.followers.get(broker_id), self._leader.facts.get(log.partition)
        if follower is None:
            return UNKNOWN
        if facts is None or broker_id in {*facts.isr, *log.joining}:
            return follower.all_committed(report.end_offset)
        return follower.committed

    async def _learn(self, broker_id: int, report: Report) -> None:
        log = report.log
        assert log is not None and log.base is not None
        base, follower = log.base, log.follower(broker_id)
        try:
            if self._find_committed is not None:
                await self._learn_committed(broker_id, log, report, follower)
            else:
                end = await self._find_epoch_end(log.partition, report.last_epoch)
                log.learn_end_of(report.last_epoch, end, base)
        except HistoryUnreadable as failure:
            where = f"epoch {report.last_epoch} of partition {log.partition}"
            logger.warning("where %s ended: %s", where, failure)

    async def _learn_committed(
        self, broker_id: int, log: PartitionLog, report: Report, follower: Follower
    ) -> None:
        """Ask the broker itself. What is known of one that went meanwhile is kept no more."""
        assert self._find_committed is not None
        found = await self._find_committed(broker_id, log.partition, report.end_offset)
        follower.committed = max(follower.committed, min(found, report.end_offset))
