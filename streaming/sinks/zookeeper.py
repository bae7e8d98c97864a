"""Writes decisions to ZooKeeper: fenced by the epoch they were decided under, many znodes per
multi.

A write that meets other content is lost for its partition alone; what the znode holds now becomes
an event. So is one that ZooKeeper rejects whatever the znode holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, groupby, tee
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from state.decisions import Action, DecisionKind
from streaming.sinks.batch import DecidedBatch, LostWrite, SinkDecision
from streaming.sinks.doubts import Doubts, drop_dependents
from streaming.sinks.expired_tokens import delete_tokens
from streaming.sinks.later_writes import LaterWrites
from streaming.sinks.reassignments import (
    ended_requests,
    hold_back_completions,
    remove_ended,
    runs,
)
from streaming.sinks.stored_topics import StoredTopics, names_taken, read_topics
from streaming.sinks.topic_deletion import delete_topics, lose_undeleted, without_replaced
from streaming.sinks.topic_dependents import drop_topic_dependents
from streaming.sinks.writes import (
    STAGES,
    OnConflict,
    RowTarget,
    Target,
    WholeTarget,
    Write,
    writes_of,
)
from streaming.zk.client import ZkSession
from streaming.zk.errors import ConnectionLost, SessionLost, ZooKeeperUnreachable
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Create, SetData, WriteOp
from streaming.zk.outcomes import OpOutcome, OutcomeKind
from streaming.zk.types import ZNode
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH

logger = logging.getLogger(__name__)

_Done = TypeVar("_Done")

_WRITTEN = {
    DecisionKind.DELETE_DELEGATION_TOKEN,
    DecisionKind.DELETE_TOPIC,
    DecisionKind.REMOVE_REASSIGNMENTS,
    *(kind for stage in STAGES for kind in stage),
}


class ZooKeeperSink:
    """Writes batches through a session of its own; the epoch check fences it, whoever owns
    /controller.
    """

    def __init__(
        self,
        open_session: Callable[[], ZkSession],
        limits: WriteLimits,
        *,
        stopped: Callable[[], bool],
    ) -> None:
        """Take how to open a session, how much to write at once, and whether the job is to end; a
        session is opened now.
        """
        self._open_session = open_session
        self._stopped = stopped
        self._limits = limits
        self._session = open_session()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def write(self, batch: DecidedBatch, doubts: Doubts) -> None:
        """Make all writes of a batch and note on it which did not happen, what was lost by that and
        whether it was fenced.

        doubts: know what a job before this one could not write. Rows that are lost already are not
        written. Repeating the call after a crash finds what is written already. A session that is
        lost is replaced and the writes repeated, however long ZooKeeper is away; raises
        ZooKeeperUnreachable when the job is to end meanwhile.
        """
        lost = [(one.failed, one.lost.copy()) for one in batch.decisions]

        def write() -> None:
            _start_again(batch, lost)
            self._write(batch, doubts)

        self._patiently(f"writing batch {batch.batch_id}", write)

    def lose_undeleted(self, deletions: Sequence[SinkDecision]) -> None:
        """Lose what blocks say about topics in deletion of whose name there is another topic by
        now; waits for ZooKeeper as `write` does.
        """
        self._patiently("reading topics", lambda: lose_undeleted(self._session, deletions))

    def is_in_force(self, epoch_zk_version: int) -> bool:
        """Return whether /controller_epoch has this version; waits as `write` does."""

        def read() -> ZNode | None:
            self._session.sync()  # the front claims by another server
            return self._session.get(CONTROLLER_EPOCH_PATH)

        found = self._patiently("reading the controller epoch", read)
        return found is not None and found.version == epoch_zk_version

    def stored_topics(self, names: Sequence[str]) -> StoredTopics:
        """Return what ZooKeeper holds of topics; waits as `write` does."""
        return self._patiently("reading topics", lambda: read_topics(self._session, names))

    def _patiently(self, doing: str, work: Callable[[], _Done]) -> _Done:
        while True:
            try:
                return work()
            except (SessionLost, ZooKeeperUnreachable) as error:
                logger.warning("session lost while %s: %s", doing, error)
                self._session.close()
                self._session = self._new_session()

    def _new_session(self) -> ZkSession:
        while True:
            try:
                return self._open_session()
            except (ZooKeeperUnreachable, ConnectionLost, SessionLost) as error:
                if self._stopped():
                    raise
                logger.warning("batches wait for ZooKeeper: %s", error)

    def _write(self, batch: DecidedBatch, doubts: Doubts) -> None:
        written = [one for one in batch.decisions if one.kind in _WRITTEN]
        later = LaterWrites(batch, doubts)
        for version, decisions in groupby(written, key=lambda one: one.fence):
            writer = FencedWriter(self._session, version, self._limits)
            of_epoch = without_replaced(self._session, list(decisions))
            # A name may be deleted and used again, and the other way round: in this order.
            for deleted, run in groupby(of_epoch, key=_deletes_topic):
                if deleted:
                    delete_topics(self._session, writer, batch, list(run))
                else:
                    for part in runs(list(run)):
                        _write_run(batch, writer, part, of_epoch, later, session=self._session)
                        if not remove_ended(self._session, writer, ended_requests(batch, part)):
                            batch.fenced.add(version)
            delete_tokens(self._session, writer, batch, of_epoch)


def _deletes_topic(decision: SinkDecision) -> bool:
    return decision.kind is DecisionKind.DELETE_TOPIC


def _write_run(
    batch: DecidedBatch,
    writer: FencedWriter,
    run: Sequence[SinkDecision],
    of_epoch: Sequence[SinkDecision],
    later: LaterWrites,
    *,
    session: ZkSession,
) -> None:
    for stage in STAGES:
        lost_before = len(batch.lost_writes)
        hold_back_completions(batch, run)
        writes: Iterable[Write] = chain.from_iterable(
            writes_of(stage, one) for one in run if one.kind in stage
        )
        while again := _make(batch, writer, writes, later):
            writes = _of_new_topics(session, again)
        drop_topic_dependents(batch, of_epoch)
        if len(batch.lost_writes) > lost_before:
            # A later stage or run might find the version that it expects; this one gave up.
            drop_dependents(batch)


def _of_new_topics(session: ZkSession, writes: Sequence[Write]) -> list[Write]:
    """Return writes without configurations of topics that there are: somebody else made them, or
    this job before a crash, and what is configured since is not ours to replace.
    """

    def replaces(write: Write) -> bool:
        return _on_conflict(write[1]) is OnConflict.REPLACE

    taken = names_taken(session, [one[1].decision.topic for one in writes if replaces(one)])
    return [one for one in writes if not replaces(one) or one[1].decision.topic not in taken]


def _start_again(batch: DecidedBatch, lost: Sequence[tuple[bool, npt.NDArray[np.bool_]]]) -> None:
    batch.lost_writes.clear()
    batch.fenced.clear()
    for one, (failed, rows) in zip(batch.decisions, lost, strict=True):
        one.failed = failed
        one.lost[:] = rows


def _make(
    batch: DecidedBatch, writer: FencedWriter, writes: Iterable[Write], later: LaterWrites
) -> list[Write]:
    """Make writes and note what became of them; return those to be made in another way."""
    made, meant = tee(writes)
    outcomes = writer.write(op for op, _ in made)
    again: list[Write] = []
    lost_paths: set[str] = set()
    for (op, target), outcome in zip(meant, outcomes, strict=True):
        if outcome.kind is OutcomeKind.WRITTEN or _is_as_meant(op, target, outcome, later):
            continue
        instead = _instead(op, target, outcome, lost_paths)
        if instead is None:
            lost_paths.add(op.path)
            _lose(batch, op, target, outcome)
        else:
            again.append((instead, target))
    return again


def _is_as_meant(op: WriteOp, target: Target, outcome: OpOutcome, later: LaterWrites) -> bool:
    """Return whether there is nothing more to do for an operation that was not written."""
    if outcome.kind is OutcomeKind.CONFLICT and later.explain(
        target.decision, op.path, outcome.current
    ):
        return True
    return outcome.current is not None and _on_conflict(target) is OnConflict.KEEP


def _instead(
    op: WriteOp, target: Target, outcome: OpOutcome, lost_paths: Collection[str]
) -> WriteOp | None:
    """Return what to make instead of an operation, if anything.

    A configuration that a deleted topic left behind is replaced, as Kafka does. A state is created
    after all where it met nothing: what was given up is an earlier topic's write to that znode, and
    all behind it.
    """
    if outcome.kind is not OutcomeKind.CONFLICT or not isinstance(op, Create):
        return None
    if outcome.current is None:
        return op if isinstance(target, RowTarget) and op.path in lost_paths else None
    if _on_conflict(target) is not OnConflict.REPLACE:
        return None
    return SetData(op.path, op.data, outcome.current.version)


def _on_conflict(target: Target) -> OnConflict:
    return target.on_conflict if isinstance(target, WholeTarget) else OnConflict.LOSE


def _lose(batch: DecidedBatch, op: WriteOp, target: Target, outcome: OpOutcome) -> None:
    """Lose what an operation was for, and note why."""
    decision = target.decision
    noted = False
    if isinstance(target, RowTarget):
        noted = bool(decision.lost[target.row])
        decision.lost[target.row] = True
    else:
        decision.failed = True
    if outcome.kind is OutcomeKind.FENCED:
        batch.fenced.add(decision.fence)
        return
    logger.warning("%s: %s %s", op.path, outcome.kind, outcome.reason)
    if not noted:  # the folder above a state, and the state's own
        batch.lost_writes.append(_lost_write(target, outcome))


def _lost_write(target: Target, outcome: OpOutcome) -> LostWrite:
    decision = target.decision
    topic, topic_id = decision.content.get("topic"), None
    partition, creates = None, False
    if isinstance(target, RowTarget):
        columns, row = decision.columns, target.row
        number = int(columns["topic"][row])
        topic, topic_id = decision.topics[number], decision.topic_ids[number]
        partition = int(columns["partition"][row])
        creates = bool(columns["actions"][row] & Action.CREATE)
    rejected = outcome.reason if outcome.kind is OutcomeKind.REJECTED else ""
    return LostWrite(
        decision.offset,
        decision.kind,
        topic,
        partition,
        outcome.current,
        creates,
        rejected,
        topic_id,
    )
