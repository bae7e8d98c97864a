"""A batch that is run again knows its own later writes by what they leave, and nothing else."""

from __future__ import annotations

import orjson
import pytest

from state.decisions import DecisionKind
from streaming.log.api import LogRecord
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.sinks.doubts import Doubts
from streaming.sinks.later_writes import LaterWrites
from streaming.sinks.writes import STAGES, writes_of
from streaming.zk.ops import SetData
from streaming.zk.types import ZNode
from tests.unit.sinks.support import Job

TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"


@pytest.fixture
def batch() -> DecidedBatch:
    """A reassignment that starts and ends, and the deletion of its topic, in one batch."""
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create("t", [[1, 2]])
    job.persist(job.decide())
    job.story.move("t", {0: [3, 2]})
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    job.story.write("delete_topic_requested", "t", request_id="d", topic="t")
    for id_ in (2, 3):
        job.story.replicas_deleted(id_, "t", [0])
    return job.decide()


def write_of(one: SinkDecision) -> SetData:
    [op] = [op for stage in STAGES if one.kind in stage for op, _ in writes_of(stage, one)]
    assert isinstance(op, SetData)
    return op


def znode(data: bytes, version: int) -> ZNode:
    return ZNode(data, version, 1, 1, 1, 0)


def test_what_a_later_write_leaves_is_ours(batch: DecidedBatch) -> None:
    [start] = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    [end] = batch.of_kind(DecisionKind.COMPLETE_REASSIGNMENT)
    op = write_of(end)
    later = LaterWrites(batch, Doubts())
    left = op.expected_version + 1
    assert later.explain(start, TOPIC, znode(op.data, left))
    assert not later.explain(start, TOPIC, znode(op.data, left + 1))
    assert not later.explain(start, TOPIC, znode(op.data + b" ", left))
    assert not later.explain(end, TOPIC, znode(op.data, left))


def test_a_topic_was_written_before_what_the_job_before_found_refused(batch: DecidedBatch) -> None:
    [start] = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    [end] = batch.of_kind(DecisionKind.COMPLETE_REASSIGNMENT)
    said = orjson.dumps({"topic": "t", "observed_again": True, "since": end.offset})
    later = LaterWrites(batch, Doubts([LogRecord(99, 1, "topic_removed", "t", said)]))
    of_others = znode(b"{}", 7)
    assert later.explain(start, TOPIC, of_others)
    assert not later.explain(start, STATE, of_others)
    assert not later.explain(end, TOPIC, of_others)


def test_a_topic_that_is_deleted_later_may_be_gone(batch: DecidedBatch) -> None:
    changes = batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
    [deletion] = batch.of_kind(DecisionKind.DELETE_TOPIC)
    later = LaterWrites(batch, Doubts())
    assert later.explain(changes[0], STATE, None)
    assert later.explain(changes[0], TOPIC, None)
    assert not later.explain(changes[0], "/brokers/topics/tt", None)
    assert not later.explain(changes[0], "/latest_producer_id_block", None)
    assert not later.explain(deletion, STATE, None)
