"""The znode writes that decisions stand for, in the order in which they depend on one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np

from state import bodies
from state.decisions import Action, DecisionKind, acts
from streaming.sinks.batch import SinkDecision
from streaming.zk.ops import Create, Delete, SetData, WriteOp
from streaming.zk.znodes.controller import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    producer_id_block_bytes,
)
from streaming.zk.znodes.notifications import config_bytes
from streaming.zk.znodes.partition_state import partition_state_bytes
from streaming.zk.znodes.paths import (
    entity_config_path,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_deletion_path,
    topic_path,
)
from streaming.zk.znodes.topic import TopicZNode, topic_bytes


class OnConflict(Enum):
    """What becomes of a decision whose write met another znode: it has failed, a Create overwrites
    the znode, or whatever is there will do.
    """

    LOSE = "lose"
    REPLACE = "replace"
    KEEP = "keep"


class RowTarget(NamedTuple):
    """An operation is for a row of a decision's block; a tuple, because there is one for every
    row.
    """

    decision: SinkDecision
    row: int


class WholeTarget(NamedTuple):
    """An operation is for a decision that has no rows."""

    decision: SinkDecision
    on_conflict: OnConflict = OnConflict.LOSE


Target = RowTarget | WholeTarget
Write = tuple[WriteOp, Target]
Stage = dict[DecisionKind, Callable[[SinkDecision], Iterator[Write]]]


def writes_of(stage: Stage, decision: SinkDecision) -> Iterator[Write]:
    """Return what a decision writes in a stage: nothing if it failed, nothing for lost rows."""
    return iter(()) if decision.failed else stage[decision.kind](decision)


def _config_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.CreateTopic = decision.content
    op = Create(entity_config_path("topics", body["topic"]), config_bytes(body["configs"]))
    yield op, WholeTarget(decision, OnConflict.REPLACE)


def _create_topic_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.CreateTopic = decision.content
    znode = TopicZNode(bodies.by_number(body["assignment"]), topic_id=body["topic_id"])
    yield Create(topic_path(body["topic"]), topic_bytes(znode)), WholeTarget(decision)


def _rewrite_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.RewriteAssignment = decision.content
    replicas, adding, removing = map(
        bodies.by_number, (body["assignment"], body["adding"], body["removing"])
    )
    znode = TopicZNode(replicas, body["topic_id"], adding, removing)
    op = SetData(topic_path(body["topic"]), topic_bytes(znode), body["expected_version"])
    yield op, WholeTarget(decision)


def _producer_id_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.WriteProducerIdBlock = decision.content
    data = producer_id_block_bytes(
        ProducerIdBlock(body["broker"], body["block_start"], body["block_end"])
    )
    expected = body["expected_version"]
    path = PRODUCER_ID_BLOCK_PATH
    op = Create(path, data) if expected < 0 else SetData(path, data, expected)
    yield op, WholeTarget(decision)


def _mark_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.MarkTopicDeletion = decision.content
    yield Create(topic_deletion_path(body["topic"])), WholeTarget(decision, OnConflict.KEEP)


def _unmark_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.MarkTopicDeletion = decision.content
    yield Delete(topic_deletion_path(body["topic"])), WholeTarget(decision)


def _delete_ops(decision: SinkDecision) -> Iterator[Write]:
    body: bodies.DeleteAdminZnode = decision.content
    yield Delete(body["path"], body["expected_version"]), WholeTarget(decision)


def _folder_ops(decision: SinkDecision) -> Iterator[Write]:
    """Create the folders above new partitions; one that is there already counts as created."""
    columns = decision.columns
    created = np.flatnonzero(acts(columns, Action.CREATE) & ~decision.lost)
    topics = decision.topics
    described = zip(
        created.tolist(),
        columns["topic"][created].tolist(),
        columns["partition"][created].tolist(),
        strict=True,
    )
    above: set[int] = set()
    for row, topic, partition in described:
        target = RowTarget(decision, row)
        if topic not in above:
            above.add(topic)
            yield Create(partitions_path(topics[topic])), target
        yield Create(partition_path(topics[topic], partition)), target


def _state_ops(decision: SinkDecision) -> Iterator[Write]:
    columns = decision.columns
    rows = np.flatnonzero(acts(columns, Action.WRITE) & ~decision.lost)
    data = partition_state_bytes(
        columns["leader"][rows],
        columns["leader_epoch"][rows],
        columns["isr"][rows],
        columns["controller_epoch"][rows],
        columns["recovery"][rows],
    )
    topics = decision.topics
    described = zip(
        rows.tolist(),
        data,
        columns["topic"][rows].tolist(),
        columns["partition"][rows].tolist(),
        (columns["partition_epoch"][rows] - 1).tolist(),
        acts(columns, Action.CREATE)[rows].tolist(),
        strict=True,
    )
    for row, znode, topic, partition, expected, is_new in described:
        path = partition_state_path(topics[topic], partition)
        op = Create(path, znode) if is_new else SetData(path, znode, expected)
        yield op, RowTarget(decision, row)


STAGES: tuple[Stage, ...] = (
    {DecisionKind.CREATE_TOPIC: _config_ops},
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
"""Writes in the order in which they depend on one another: configurations of new topics, without
which there is to be no topic (AdminZkClient.createTopicWithAssignment), topics, partition folders,
states, ends of reassignments, and the requests that are answered by them."""
