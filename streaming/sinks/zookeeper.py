"""Writes decisions to ZooKeeper: fenced by the epoch they were decided under, many znodes per
multi.

A write that meets other content is lost for its partition alone; what the znode holds now becomes
an event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from state.decisions import Action, DecisionKind
from streaming.sinks.batch import TOPIC_WRITES, DecidedBatch, SinkDecision, WriteConflict
from streaming.sinks.reassignments import (
    ended_requests,
    hold_back_completions,
    remove_ended,
    runs,
)
from streaming.sinks.topic_deletion import delete_topics
from streaming.zk.chain import OpOutcome, OutcomeKind
from streaming.zk.client import ZkSession
from streaming.zk.errors import ConnectionLost, SessionLost, ZooKeeperUnreachable
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Create, Delete, SetData, WriteOp
from streaming.zk.znodes.controller import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    producer_id_block_bytes,
)
from streaming.zk.znodes.notifications import config_bytes
from streaming.zk.znodes.partition_state import partition_state_bytes
from streaming.zk.znodes.paths import entity_config_path, topic_deletion_path, topic_path
from streaming.zk.znodes.topic import TopicZNode, topic_bytes

logger = logging.getLogger(__name__)

_CREATE = int(Action.CREATE)
_WRITE = int(Action.WRITE)
_ASSIGNMENTS = TOPIC_WRITES - {DecisionKind.CREATE_TOPIC}


_WHOLE = -1
_CONFIG = -2
_PRESENT = -3


@dataclass(frozen=True, slots=True)
class _Target:
    """What an operation is for: a decision, and the row of its block (_WHOLE, _CONFIG: no row;
    _PRESENT: no row either, whatever is there will do).
    """

    decision: SinkDecision
    row: int


_Op = tuple[WriteOp, _Target]
_Ops = dict[DecisionKind, Callable[[SinkDecision], Iterator[_Op]]]


class ZooKeeperSink:
    """Writes batches through a session of its own; the epoch check fences it, whoever owns
    /controller.
    """

    def __init__(
        self,
        open_session: Callable[[], ZkSession],
        *,
        max_ops_per_multi: int,
        max_in_flight: int,
        stopped: Callable[[], bool],
    ) -> None:
        """Take how to open a session, and whether the job is to end; a session is opened now."""
        self._open_session = open_session
        self._stopped = stopped
        self._limits = {"max_ops_per_multi": max_ops_per_multi, "max_in_flight": max_in_flight}
        self._session = open_session()

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def write(self, batch: DecidedBatch) -> None:
        """Make all writes of a batch and note on it what was lost, what conflicted and whether it
        was fenced.

        Rows that are lost already are not written. Repeating the call after a crash finds what is
        written already. A session that is lost is replaced and the writes repeated, however long
        ZooKeeper is away; raises ZooKeeperUnreachable when the job is to end meanwhile.
        """
        lost = [(one.failed, one.lost.copy()) for one in batch.decisions]
        while True:
            try:
                self._write(batch)
            except SessionLost as error:
                logger.warning("session lost while writing batch %s: %s", batch.batch_id, error)
                self._session.close()
                self._session = self._new_session()
                _start_again(batch, lost)
            else:
                return

    def _new_session(self) -> ZkSession:
        while True:
            try:
                return self._open_session()
            except (ZooKeeperUnreachable, ConnectionLost, SessionLost) as error:
                if self._stopped():
                    raise
                logger.warning("batches wait for ZooKeeper: %s", error)

    def _write(self, batch: DecidedBatch) -> None:
        written = [one for one in batch.decisions if one.kind in _WRITTEN]
        for version, decisions in groupby(written, key=epoch_zk_version):
            writer = FencedWriter(self._session, version, **self._limits)
            of_epoch = list(decisions)
            # A name may be deleted and used again, and the other way round: in this order.
            for deleted, run in groupby(of_epoch, key=_deletes_topic):
                if deleted:
                    delete_topics(self._session, writer, batch, list(run))
                else:
                    for part in runs(list(run)):
                        _write_run(batch, writer, part, of_epoch)
                        if not remove_ended(self._session, writer, ended_requests(part)):
                            batch.fenced.add(version)


def _deletes_topic(decision: SinkDecision) -> bool:
    return decision.kind is DecisionKind.DELETE_TOPIC


def _write_run(
    batch: DecidedBatch,
    writer: FencedWriter,
    run: Sequence[SinkDecision],
    of_epoch: Sequence[SinkDecision],
) -> None:
    for stage in _STAGES:
        hold_back_completions(batch, run)
        ops = [op for one in run if one.kind in stage for op in _ops(stage, one)]
        while ops:
            ops = _settle(batch, ops, writer.write([op for op, _ in ops]))
        _lose_partitions_of_failed_topics(of_epoch)


def _start_again(batch: DecidedBatch, lost: Sequence[tuple[bool, npt.NDArray[np.bool_]]]) -> None:
    batch.conflicts.clear()
    batch.fenced.clear()
    for one, (failed, rows) in zip(batch.decisions, lost, strict=True):
        one.failed = failed
        one.lost[:] = rows


def _settle(batch: DecidedBatch, ops: Sequence[_Op], outcomes: list[OpOutcome]) -> list[_Op]:
    """Note what became of the operations; return those to be made in another way."""
    again: list[_Op] = []
    for (op, target), outcome in zip(ops, outcomes, strict=True):
        if outcome.kind is OutcomeKind.WRITTEN:
            continue
        if target.row == _CONFIG and isinstance(op, Create) and outcome.current is not None:
            # A configuration that a deleted topic left behind is replaced, as Kafka does.
            again.append((SetData(op.path, op.data, outcome.current.version), target))
            continue
        if target.row == _PRESENT and outcome.current is not None:
            continue
        if target.row < 0:
            target.decision.failed = True
        else:
            target.decision.lost[target.row] = True
        if outcome.kind is OutcomeKind.FENCED:
            batch.fenced.add(epoch_zk_version(target.decision))
        else:
            logger.warning("%s: %s %s", op.path, outcome.kind, outcome.reason)
            batch.conflicts.append(_conflict(target, outcome))
    # The configuration of a topic that turned out to exist is not ours to replace.
    return [(op, target) for op, target in again if not target.decision.failed]


def _lose_partitions_of_failed_topics(decisions: Sequence[SinkDecision]) -> None:
    """Lose what was decided about a topic on the event whose write of it failed, and after it."""
    failed: dict[str, int] = {}
    for one in decisions:
        if one.kind in TOPIC_WRITES and one.failed:
            failed.setdefault(one.extra["topic"], one.offset)
    if not failed:
        return
    for one in decisions:
        if (
            one.kind in _ASSIGNMENTS
            and failed.get(one.extra["topic"], one.offset + 1) <= one.offset
        ):
            one.failed = True
        if one.kind is DecisionKind.CHANGE_PARTITIONS:
            lost = [
                failed.get(topic, one.offset + 1) <= one.offset for topic in one.extra["topics"]
            ]
            one.lost |= np.array(lost)[one.columns["topic"]]


def epoch_zk_version(decision: SinkDecision) -> int:
    """Return the version of /controller_epoch that a write was decided under."""
    version: int = decision.extra["epoch_zk_version"]
    return version


def _conflict(target: _Target, outcome: OpOutcome) -> WriteConflict:
    decision, row = target.decision, target.row
    if row < 0:
        topic = decision.extra.get("topic")
        return WriteConflict(decision.offset, decision.kind, topic, None, outcome.current)
    return WriteConflict(
        decision.offset,
        decision.kind,
        decision.extra["topics"][int(decision.columns["topic"][row])],
        int(decision.columns["partition"][row]),
        outcome.current,
    )


def _create_topic_ops(decision: SinkDecision) -> Iterator[_Op]:
    body = decision.extra
    replicas = {int(partition): ids for partition, ids in body["assignment"].items()}
    znode = TopicZNode(replicas, topic_id=body["topic_id"])
    config = Create(entity_config_path("topics", body["topic"]), config_bytes(body["configs"]))
    yield config, _Target(decision, _CONFIG)
    yield Create(topic_path(body["topic"]), topic_bytes(znode)), _Target(decision, _WHOLE)


def _rewrite_ops(decision: SinkDecision) -> Iterator[_Op]:
    body = decision.extra
    replicas, adding, removing = (
        {int(partition): ids for partition, ids in body[name].items()}
        for name in ("assignment", "adding", "removing")
    )
    znode = TopicZNode(replicas, body["topic_id"], adding, removing)
    op = SetData(topic_path(body["topic"]), topic_bytes(znode), body["expected_version"])
    yield op, _Target(decision, _WHOLE)


def _producer_id_ops(decision: SinkDecision) -> Iterator[_Op]:
    body = decision.extra
    data = producer_id_block_bytes(
        ProducerIdBlock(body["broker"], body["block_start"], body["block_end"])
    )
    expected = body["expected_version"]
    path = PRODUCER_ID_BLOCK_PATH
    op = Create(path, data) if expected < 0 else SetData(path, data, expected)
    yield op, _Target(decision, _WHOLE)


def _ops(stage: _Ops, decision: SinkDecision) -> Iterator[_Op]:
    return iter(()) if decision.failed else stage[decision.kind](decision)


def _mark_ops(decision: SinkDecision) -> Iterator[_Op]:
    yield Create(topic_deletion_path(decision.extra["topic"])), _Target(decision, _PRESENT)


def _unmark_ops(decision: SinkDecision) -> Iterator[_Op]:
    yield Delete(topic_deletion_path(decision.extra["topic"])), _Target(decision, _WHOLE)


def _delete_ops(decision: SinkDecision) -> Iterator[_Op]:
    body = decision.extra
    yield Delete(body["path"], body["expected_version"]), _Target(decision, _WHOLE)


def _folder_ops(decision: SinkDecision) -> Iterator[_Op]:
    """Create the folders above new partitions; one that is there already counts as created."""
    columns, topics = decision.columns, decision.extra["topics"]
    created = np.flatnonzero((columns["actions"] & _CREATE != 0) & ~decision.lost)
    for topic in np.unique(columns["topic"][created]).tolist():
        first = int(created[columns["topic"][created] == topic][0])
        yield Create(f"{topic_path(topics[topic])}/partitions"), _Target(decision, first)
    for row in created.tolist():
        folder = (
            f"{topic_path(topics[columns['topic'][row]])}/partitions/{columns['partition'][row]}"
        )
        yield Create(folder), _Target(decision, row)


def _state_ops(decision: SinkDecision) -> Iterator[_Op]:
    columns = decision.columns
    rows = np.flatnonzero((columns["actions"] & _WRITE != 0) & ~decision.lost)
    data = partition_state_bytes(
        columns["leader"][rows],
        columns["leader_epoch"][rows],
        columns["isr"][rows],
        columns["controller_epoch"][rows],
        columns["recovery"][rows],
    )
    folders = [f"{topic_path(topic)}/partitions/" for topic in decision.extra["topics"]]
    described = zip(
        rows.tolist(),
        data,
        columns["topic"][rows].tolist(),
        columns["partition"][rows].tolist(),
        (columns["partition_epoch"][rows] - 1).tolist(),
        (columns["actions"][rows] & _CREATE != 0).tolist(),
        strict=True,
    )
    for row, znode, topic, partition, expected, is_new in described:
        path = f"{folders[topic]}{partition}/state"
        op = Create(path, znode) if is_new else SetData(path, znode, expected)
        yield op, _Target(decision, row)


_STAGES: tuple[_Ops, ...] = (
    {
        DecisionKind.CREATE_TOPIC: _create_topic_ops,
        DecisionKind.REWRITE_ASSIGNMENT: _rewrite_ops,
        DecisionKind.MARK_TOPIC_DELETION: _mark_ops,
        DecisionKind.UNMARK_TOPIC_DELETION: _unmark_ops,
        DecisionKind.WRITE_PRODUCER_ID_BLOCK: _producer_id_ops,
    },
    {DecisionKind.CHANGE_PARTITIONS: _folder_ops},
    {DecisionKind.CHANGE_PARTITIONS: _state_ops},
    {DecisionKind.COMPLETE_REASSIGNMENT: _rewrite_ops},
    {DecisionKind.DELETE_ADMIN_ZNODE: _delete_ops},
)
"""Writes in the order in which they depend on one another: topics, partition folders, states, ends
of reassignments, and the requests that are answered by them."""

_WRITTEN = {
    DecisionKind.DELETE_TOPIC,
    DecisionKind.REMOVE_REASSIGNMENTS,
    *(kind for stage in _STAGES for kind in stage),
}
