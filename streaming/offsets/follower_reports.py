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
from streaming.offsets.partition_facts import PartitionFacts
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
    part of it. undecided: the error may be over soon; unclear: somebody has to be asked where.
    """

    error: ProtocolError = ProtocolError.NONE
    parts_at: EpochEnd | None = None
    undecided: bool = False
    unclear: bool = False


_STRANGER = Follower()
_AGREED = Verdict()
_NOT_LED = Verdict(ProtocolError.NOT_LEADER_OR_FOLLOWER)
_FENCED = Verdict(ProtocolError.FENCED_LEADER_EPOCH)
_TOO_EARLY = Verdict(ProtocolError.UNKNOWN_LEADER_EPOCH)
_UNDECIDED = Verdict(ProtocolError.UNKNOWN_LEADER_EPOCH, undecided=True)
_UNCLEAR = Verdict(ProtocolError.UNKNOWN_LEADER_EPOCH, undecided=True, unclear=True)


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

    async def take(self, broker_id: int, reports: Sequence[Report]) -> list[Verdict]:
        """Note how far a broker is in each partition, learn what is needed to judge that, and
        return what it is to be told.
        """
        before = self._leader.broker_epoch(broker_id)
        verdicts = [self._judge(broker_id, one, learned=False) for one in reports]
        judged = zip(reports, verdicts, strict=True)
        if questions := [
            self._learn(broker_id, report, log, log.base, log.follower(broker_id))
            for report, verdict in judged
            if verdict.unclear and (log := report.log) is not None and log.base is not None
        ]:
            await asyncio.gather(*questions)
            if self._leader.broker_epoch(broker_id) != before:
                return [_UNDECIDED] * len(reports)  # who asked is gone, and may be back with less
            return [self._judge(broker_id, one, learned=True) for one in reports]
        return verdicts

    def again(self, broker_id: int, reports: Sequence[Report]) -> list[Verdict]:
        """Return what a broker is to be told now of reports that were taken; how far it is was
        noted then.
        """
        return [self._judge(broker_id, one, learned=True, noted=True) for one in reports]

    def _judge(
        self, broker_id: int, report: Report, *, learned: bool, noted: bool = False
    ) -> Verdict:
        """Note how far a broker is, and return what it is to be told; learned: whether all has been
        asked that can be.
        """
        log = report.log
        if log is None:
            return _NOT_LED
        if report.current_leader_epoch != log.epoch:
            return _FENCED if report.current_leader_epoch < log.epoch else _TOO_EARLY
        if report.end_offset == UNKNOWN:
            return _UNDECIDED
        facts = self._leader.facts.get(log.partition)
        if facts is None or broker_id not in facts.replicas:
            compared = self._compared(broker_id, log, report, None) if log.begun else _UNDECIDED
            return _UNDECIDED if compared.unclear else compared  # nobody is asked for its sake
        if not log.begun and not noted:  # it may begin by that
            self._leader.fetched(log, broker_id, report.end_offset, report.last_epoch)
        if not log.begun and broker_id not in facts.in_sync:
            return _UNDECIDED
        verdict = self._compared(broker_id, log, report, facts if learned else None)
        if not noted or verdict.parts_at is not None:
            self._note(broker_id, log, report, verdict)
        # A broker takes no notice of an epoch of -1, and would ask again at once.
        told = verdict.parts_at is None or verdict.parts_at.epoch != UNKNOWN
        return verdict if told else _UNDECIDED

    def _note(self, broker_id: int, log: PartitionLog, report: Report, verdict: Verdict) -> None:
        if verdict.parts_at is not None:
            log.diverged(broker_id, verdict.parts_at.end_offset)
        elif not log.begun or verdict.unclear:
            return
        elif verdict.undecided:
            log.diverged(broker_id, UNKNOWN)
        else:
            self._leader.fetched(log, broker_id, report.end_offset, report.last_epoch)

    def _compared(
        self, broker_id: int, log: PartitionLog, report: Report, facts: PartitionFacts | None
    ) -> Verdict:
        """Return whether a log is a part of ours; facts: None while somebody may yet be asked.

        What a broker has beyond its own high watermark it may not cut off in the ISR, or while it
        is asked into that: it may have acknowledged it.
        """
        follower = log.followers.get(broker_id, _STRANGER)
        committed = follower.all_committed(report.end_offset)
        if facts is not None and broker_id not in facts.isr and broker_id not in log.joining:
            committed = follower.committed
        shared = log.end_of(report.last_epoch, committed)
        if shared is None:
            return _UNDECIDED if facts is not None or log.base is None else _UNCLEAR
        if not shared.covers(report.last_epoch, report.end_offset):
            return Verdict(parts_at=shared)
        return _AGREED if log.begun else _UNDECIDED

    async def _learn(
        self, broker_id: int, report: Report, log: PartitionLog, base: EpochEnd, follower: Follower
    ) -> None:
        """Ask where the last epoch of a log ended, or the broker for its own high watermark; base
        and follower: of the log when it was looked at.
        """
        try:
            if self._find_committed is None:
                end = await self._find_epoch_end(log.partition, report.last_epoch)
                log.learn_end_of(report.last_epoch, end, base)
            else:
                end_offset = report.end_offset
                found = await self._find_committed(broker_id, log.partition, end_offset)
                follower.committed = max(follower.committed, min(found, end_offset))
        except HistoryUnreadable as failure:
            where = f"epoch {report.last_epoch} of partition {log.partition}"
            logger.warning("where %s ended: %s", where, failure)
