"""What happens to a batch of decisions, in order.

1. The decision log takes them; ids it already has are dropped.
2. ZooKeeper takes the writes, fenced by the controller epoch; a conflict costs its partition only.
3. The image folds what was persisted: the front is told of it first, then the brokers, through
   their queues.
4. What came of the writes goes into the event log as events.
5. The front gets the replies; the outcome log takes that the batch is complete, and the front word
   of it.

A step may be repeated after a crash: each finds what it has done before. Nothing is told to a
broker or a client that is not written. Spark commits a batch of the query when `carry_out` has
returned; answers of brokers come in later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence

from state.decisions import Decision
from state.merge import MergedDecision
from streaming.decided_rows import FoldedBatch
from streaming.link.from_job import (
    BatchCompleted,
    FromJob,
    PersistedDecisions,
    QueryFolded,
    Reobserve,
    Replies,
    by_broker,
)
from streaming.link.job_side import JobLink, LinkDown
from streaming.link.messages import pack_parts
from streaming.log.api import LogReader
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, RecordId
from streaming.process.wall_clock import wall_clock_ms
from streaming.sinks.appender import SinkAppender
from streaming.sinks.batch import DecidedBatch, SinkDecision, decided_batch, opened
from streaming.sinks.batch_events import batch_events
from streaming.sinks.brokers import BrokerSink
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.doubts import Doubts
from streaming.sinks.elections import elections
from streaming.sinks.missed_removals import removes
from streaming.sinks.missed_requests import MissedRequests
from streaming.sinks.outcome_log import OutcomeLog, outcome
from streaming.sinks.persisted import persisted
from streaming.sinks.plan import Plan, Planner, in_order
from streaming.sinks.replies import replies
from streaming.sinks.retention import Retention
from streaming.sinks.slow_batches import SlowBatches, Steps
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.sinks.write_failures import lost_rows, rejections
from streaming.sinks.zookeeper import ZooKeeperSink

logger = logging.getLogger(__name__)


class Pipeline:
    """The sinks of one query: `carry_out` takes its micro-batches, one at a time."""

    def __init__(
        self,
        *,
        decisions: IdempotentLogWriter,
        decision_log: LogReader,
        outcomes: OutcomeLog,
        zookeeper: ZooKeeperSink,
        brokers: BrokerSink,
        unconfirmed: UnconfirmedBrokers,
        link: JobLink,
        decided: DecidedSoFar,
        planner: Planner,
        retention: Retention,
        appender: SinkAppender,
        doubts: Doubts,
        slow: SlowBatches,
        taken_back: Iterable[str],
    ) -> None:
        """Take the sinks, each ready for use, and the topics to be read again at the start."""
        self._decisions = decisions
        self._outcomes = outcomes
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._unconfirmed = unconfirmed
        self._link = link
        self._decided = decided
        self._planner = planner
        self._missed = MissedRequests(decided.image, unconfirmed, planner, decision_log, zookeeper)
        self._retention = retention
        self._appender = appender
        self._doubts = doubts
        self._slow = slow
        self._taken_back = dict.fromkeys(taken_back)
        self._replaced: set[int] = set()  # versions of /controller_epoch that hold no more

    def carry_out(self, batch_id: int | None, folded: FoldedBatch) -> None:
        """Take what was folded together through all steps; batch_id: None in a head start."""
        steps = Steps()
        batch = decided_batch(batch_id, folded)
        if batch_id is not None:
            self._query_folded(batch.end_offset)
        self._log(batch)
        steps.done("decision log")
        self._doubts.lose_rows(batch.decisions)
        self._zookeeper.write(batch, self._doubts)
        self._fence(batch, folded.loading)
        self._doubts.lose_what_follows(batch)
        batch.written_at_ms = wall_clock_ms()
        steps.done("ZooKeeper")
        self._tell(batch)
        steps.done("telling front and brokers")
        self._append_outcomes(batch)
        self._complete(batch, steps)
        steps.done("outcomes")
        self._slow.look(batch, steps)

    def pass_over(self, end_offset: int) -> None:
        """Take that the query has folded up to here what was carried out before."""
        self._query_folded(end_offset)
        self._say(QueryFolded(end_offset))

    def unanswered(self) -> int:
        """Return how many requests brokers have not answered yet."""
        return sum(self._brokers.queue_lengths().values())

    def _query_folded(self, end_offset: int) -> None:
        self._retention.folded(end_offset)
        self._decided.query_folds = True

    def _log(self, batch: DecidedBatch) -> None:
        self._decisions.append(
            [
                IdentifiedRecord(
                    RecordId(one.offset, one.merged.ordinal),
                    one.kind,
                    one.merged.body,
                    batch.time_ms[one.offset],
                )
                for one in batch.decisions
            ]
        )

    def _fence(self, batch: DecidedBatch, loading: bool) -> None:
        """Take a batch as fenced that was decided under a version which a write before it found to
        be replaced: it may have written nothing. loading: the load of a later term goes on behind
        it.
        """
        versions = {one.epoch_zk_version for one in batch.decisions}
        # What it decided first may say no version.
        versions.add(self._decided.image.epoch_zk_version)
        batch.fenced |= self._replaced & versions
        self._replaced |= batch.fenced
        if loading:
            # What is decided amid a load says no version, and the image has the one before.
            self._replaced.clear()

    def _tell(self, batch: DecidedBatch) -> None:
        visible = list(persisted(batch))
        with self._decided.lock:
            # The front knows first: a broker that has heard of a topic may ask the gateway about
            # it.
            self._fold_and_tell_front(batch, visible)
            self._tell_brokers(batch)

    def _fold_and_tell_front(self, batch: DecidedBatch, visible: Sequence[Decision]) -> None:
        self._decided.fold(batch, visible)
        if visible:
            told = PersistedDecisions.of(batch.batch_id, visible)
            self._say(told, pack_parts([one.body for one in visible]))

    def _tell_brokers(self, batch: DecidedBatch) -> None:
        start_offset = min(batch.time_ms, default=0)
        removals = [one.offset for one in batch.decisions if removes(one)]
        if batch.fenced:
            # Removals among it may have been written before the fence, this time or before a crash:
            # the next load finds nothing of them, but looks for what marked brokers have missed.
            brokers = self._decided.image.brokers
            self._unconfirmed.mark(brokers, start_offset, batch.end_offset, removals)
        plan = self._planner.plan(_in_force(batch))
        if batch.is_loaded:
            # `resend` knew no broker if the job began without machines, or while they loaded, and
            # not what holds if another controller was elected.
            plan = self._with_missed(plan, batch.loaded_at)
        self._send(plan, start_offset, batch.end_offset, removals)

    def _with_missed(self, plan: Plan, loaded_at: int) -> Plan:
        """Return the plan of a load with what unconfirmed brokers may have missed before."""
        # During a pause a load tells no replica who leads it.
        everything = self._missed.everything() if self._decided.paused else {}
        return in_order(plan, everything, self._missed.removals(loaded_at))

    def _send(
        self, plan: Plan, start_offset: int, end_offset: int, removals: Sequence[int] = ()
    ) -> None:
        self._unconfirmed.mark(plan, start_offset, end_offset, removals)
        behind = self._brokers.deliver(dict(self._decided.image.brokers), plan, end_offset)
        if behind:
            self._brokers.catch_up(self._planner.everything_for(behind), end_offset)

    def resend(self, end_offset: int, unfinished: Iterable[MergedDecision] = ()) -> None:
        """Resend full metadata to unconfirmed brokers, and the removals they may have missed.

        unfinished: deletions of topics that are under way (`unfinished_deletions`), resent to all
        brokers; those in doubt are left out, as their mark may not have been written, and those
        that the last batch ended and whose name it used again.
        end_offset: up to where the image was folded, which the front is told. A broker that was
        marked by a later batch stays marked: that batch is run again. All stay so where another
        controller was elected: what the image is made of may not have been written, and the front
        is not told it either.
        """
        self._decided.end_offset = end_offset
        image = self._decided.image
        version = image.epoch_zk_version
        if image.controller_epoch >= 0 and not self._zookeeper.is_in_force(version):
            self._replaced.add(version)
            self._decided.is_outdated = True
            return
        deletions = opened(unfinished)
        self._doubts.lose_topics(deletions, end_offset)
        self._zookeeper.lose_undeleted(deletions)
        with self._decided.lock:
            missed, removals = self._missed.everything(), self._missed.removals(end_offset)
            plan = in_order(missed, removals, self._planner.plan(deletions))
            self._send(plan, end_offset, end_offset)

    def _append_outcomes(self, batch: DecidedBatch) -> None:
        events = batch_events(batch)
        if events:
            offsets = self._appender.append_of_batch(events, batch.end_offset)
            for event, offset in zip(events, offsets, strict=True):
                self._doubts.end(event, offset)
        self._have_observed_again(batch)

    def _have_observed_again(self, batch: DecidedBatch) -> None:
        """Ask for the topics that were taken back, until the front hears it: the last job may have
        ended between their events and that, and the link may not be up yet.
        """
        self._taken_back |= dict.fromkeys(one.topic for one in batch.refused_topics())
        if self._taken_back:
            rejected = {one.topic for one in batch.rejected if one.partition is None}
            unwritable = [topic for topic in self._taken_back if topic in rejected]
            if self._say(Reobserve(list(self._taken_back), unwritable)):
                self._taken_back.clear()

    def _complete(self, batch: DecidedBatch, steps: Steps) -> None:
        answers = replies(batch, self._doubts, self._decided.image.topic_ids)
        if answers:
            self._say(Replies(answers))
        completed = self._completed(batch, steps)
        lost = {"lost": lost_rows(batch), "fenced_until": batch.fenced_until}
        lost["rejections"] = rejections(batch)
        self._outcomes.append([outcome("persisted", completed.figures() | lost)])
        # First here: a front that comes now is told of it with the image.
        self._decided.end_offset = batch.end_offset
        self._say(completed)
        self._doubts.forget_before(batch.end_offset)

    def _completed(self, batch: DecidedBatch, steps: Steps) -> BatchCompleted:
        fenced_until = batch.fenced_until
        return BatchCompleted(
            batch_id=batch.batch_id,
            end_offset=batch.end_offset,
            decisions=len(batch.decisions),
            conflicts=len(batch.conflicts),
            rejected=len(batch.rejected),
            fenced=any(one.offset < fenced_until for one in batch.decisions),
            first_event_ms=min(batch.time_ms.values(), default=None),
            written_at_ms=batch.written_at_ms,
            retain_from=self._retention.checked(),
            duration_ms=round((time.monotonic() - steps.started_s) * 1000, 3),
            elections=elections(batch),
            queue_lengths=by_broker(self._brokers.queue_lengths()),
        )

    def _say(self, told: FromJob, body: bytes = b"") -> bool:
        """Return whether it was sent."""
        try:
            self._link.send(told.head(), body)
        except LinkDown as error:
            # A front that comes back gets the whole image; those who waited for replies hung up.
            logger.info("the front misses %s: %s", told.kind, error)
            return False
        return True


def _in_force(batch: DecidedBatch) -> list[SinkDecision]:
    """Return the decisions that brokers hear of: not those of a controller that was replaced, nor
    what a fresh load made out of date.
    """
    start = max(batch.fenced_until, batch.loaded_at)
    return [one for one in batch.decisions if not one.failed and one.offset >= start]
