"""Reassignments in a real ZooKeeper: the topic, its partitions, the request, in this order."""

from __future__ import annotations

import orjson
import pytest
from kazoo.security import make_acl

from state.decisions import DecisionKind
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.zk.znodes import parse_topic
from streaming.zk.znodes.admin import parse_reassignment, reassignment_bytes
from tests.integration.sinks.support import claimed, state_of, write_state
from tests.unit.sinks.support import Job

PLAN = "/admin/reassign_partitions"


@pytest.fixture
def job(zk_session, sink) -> Job:
    """A job with topic t: partition 0 on brokers 1 and 2, partition 1 on 2 and 1."""
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=claimed(zk_session))
    job.story.create("t", [[1, 2], [2, 1]])
    sink.write(batch := job.decide())
    job.persist(batch)
    zk_session.create("/admin", b"")
    return job


def move(job, target, partition=0, request_id="r"):
    job.story.write(
        "alter_reassignments_requested",
        "t",
        request_id=request_id,
        topic="t",
        partitions=[partition],
        targets=[target],
    )


def topic(session):
    znode = session.get("/brokers/topics/t")
    return parse_topic(znode.data), znode.version


def test_a_topic_says_what_moves_until_it_has_moved(zk_session, sink, job):
    move(job, [3, 2])
    sink.write(job.decide())
    znode, version = topic(zk_session)
    assert (znode.replicas[0], znode.adding, znode.removing) == ([3, 2, 1], {0: [3]}, {0: [1]})
    assert (version, state_of(zk_session, "t", 0)[:3]) == (1, (1, 1, [1, 2]))
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    sink.write(job.decide())
    znode, version = topic(zk_session)
    assert (znode.replicas, znode.adding, znode.removing) == ({0: [3, 2], 1: [2, 1]}, {}, {})
    assert (version, state_of(zk_session, "t", 0)[:3]) == (2, (3, 2, [2, 3]))


def test_all_in_one_batch_comes_out_the_same(zk_session, sink, job):
    move(job, [3, 2])
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    grown = {"request_id": "g", "topic": "t", "partitions": 3, "assignment": [[3, 2]]}
    job.story.write("create_partitions_requested", "t", **grown)
    move(job, [1], partition=2)
    sink.write(batch := job.decide())
    assert not batch.lost_writes
    znode, version = topic(zk_session)
    assert znode.replicas == {0: [3, 2], 1: [2, 1], 2: [1, 3, 2]}
    assert (znode.adding, znode.removing, version) == ({2: [1]}, {2: [3, 2]}, 4)


def test_the_request_goes_partition_by_partition_and_then_altogether(zk_session, sink, job):
    asked = {("t", 0): [2, 1], ("t", 1): [3, 1], ("u", 0): [7]}
    zk_session.create(PLAN, reassignment_bytes(asked))
    move(job, [2, 1], request_id=None)
    sink.write(job.decide())
    del asked["t", 0]
    assert parse_reassignment(zk_session.get(PLAN).data) == asked
    job.story.write(
        "alter_reassignments_requested",
        "u",
        request_id=None,
        topic="u",
        partitions=[0],
        targets=[[7]],
    )
    move(job, [1, 2], partition=1)
    sink.write(job.decide())
    assert zk_session.get(PLAN) is None


def test_a_request_that_nobody_can_read_is_left_alone(zk_session, sink, job):
    zk_session.create(PLAN, b"{")
    move(job, [2, 1])
    sink.write(job.decide())
    assert zk_session.get(PLAN).data == b"{"


def test_a_request_that_may_not_be_read_is_left_alone(zk_session, sink, job):
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [2, 1]}))
    zk_session._kazoo.set_acls(PLAN, [make_acl("world", "anyone", admin=True)])
    move(job, [2, 1], request_id=None)
    sink.write(job.decide())
    assert PLAN.rpartition("/")[2] in zk_session.children("/admin")


def test_nothing_ends_of_which_a_partition_was_not_written(zk_session, sink, job):
    move(job, [3, 2])
    job.persist(written := job.decide())
    sink.write(written)
    write_state(zk_session, "t", 0, (1, 1, [1, 2, 3]))
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [3, 2]}))
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    sink.write(batch := job.decide())
    (completion,) = batch.of_kind(DecisionKind.COMPLETE_REASSIGNMENT)
    assert completion.failed
    assert topic(zk_session)[0].adding == {0: [3]}
    assert zk_session.get(PLAN) is not None
    removed = [orjson.loads(one.payload) for one in batch_events(batch) if one.key == "t"]
    assert {"topic": "t", "observed_again": True} in removed


def test_who_asked_while_somebody_else_changed_the_topic_is_to_ask_again(zk_session, sink, job):
    zk_session.set("/brokers/topics/t", zk_session.get("/brokers/topics/t").data)
    move(job, [3, 2])
    sink.write(batch := job.decide())
    (answer,) = replies(batch, Doubts())
    assert answer["error"] == 41
    assert all(one.lost.all() for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS))
    assert state_of(zk_session, "t", 0)[1] == 0


def test_another_epoch_moves_nothing(zk_session, sink, job):
    zk_session.set("/controller_epoch", b"9")
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [2, 1]}))
    move(job, [2, 1], request_id=None)
    sink.write(batch := job.decide())
    assert batch.fenced
    assert topic(zk_session)[1] == 0
    assert zk_session.get(PLAN) is not None
