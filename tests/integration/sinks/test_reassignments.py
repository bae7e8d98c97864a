"""Reassignments in a real ZooKeeper: the topic, its partitions, the request, in this order."""

from __future__ import annotations

import orjson
import pytest
from kazoo.security import make_acl

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.zk.znodes import parse_topic
from streaming.zk.znodes.admin import parse_reassignment, reassignment_bytes
from tests.fixtures.states import stored
from tests.integration.sinks.support import claimed, state_of, write, write_state
from tests.unit.sinks.support import Job

PLAN = "/admin/reassign_partitions"


@pytest.fixture
def job(zk_session, sink) -> Job:
    """A job with topic t: partition 0 on brokers 1 and 2, partition 1 on 2 and 1."""
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=claimed(zk_session))
    job.story.create("t", [[1, 2], [2, 1]])
    write(sink, batch := job.decide())
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
    write(sink, job.decide())
    znode, version = topic(zk_session)
    assert (znode.replicas[0], znode.adding, znode.removing) == ([3, 2, 1], {0: [3]}, {0: [1]})
    assert (version, state_of(zk_session, "t", 0)[:3]) == (1, (1, 1, [1, 2]))
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    write(sink, job.decide())
    znode, version = topic(zk_session)
    assert (znode.replicas, znode.adding, znode.removing) == ({0: [3, 2], 1: [2, 1]}, {}, {})
    assert (version, state_of(zk_session, "t", 0)[:3]) == (2, (3, 2, [2, 3]))


def test_all_in_one_batch_comes_out_the_same(zk_session, sink, job):
    move(job, [3, 2])
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    grown = {"request_id": "g", "topic": "t", "partitions": 3, "assignment": [[3, 2]]}
    job.story.write("create_partitions_requested", "t", **grown)
    move(job, [1], partition=2)
    write(sink, batch := job.decide())
    assert not batch.lost_writes
    znode, version = topic(zk_session)
    assert znode.replicas == {0: [3, 2], 1: [2, 1], 2: [1, 3, 2]}
    assert (znode.adding, znode.removing, version) == ({2: [1]}, {2: [3, 2]}, 4)


def test_the_request_goes_partition_by_partition_and_then_altogether(zk_session, sink, job):
    asked = {("t", 0): [2, 1], ("t", 1): [3, 1], ("u", 0): [7]}
    zk_session.create(PLAN, reassignment_bytes(asked))
    move(job, [2, 1], request_id=None)
    write(sink, job.decide())
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
    write(sink, job.decide())
    assert zk_session.get(PLAN) is None


def test_a_request_that_nobody_can_read_is_left_alone(zk_session, sink, job):
    zk_session.create(PLAN, b"{")
    move(job, [2, 1])
    write(sink, job.decide())
    assert zk_session.get(PLAN).data == b"{"


def test_a_request_that_may_not_be_read_is_left_alone(zk_session, sink, job):
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [2, 1]}))
    zk_session._kazoo.set_acls(PLAN, [make_acl("world", "anyone", admin=True)])
    move(job, [2, 1], request_id=None)
    write(sink, job.decide())
    assert PLAN.rpartition("/")[2] in zk_session.children("/admin")


def test_nothing_ends_of_which_a_partition_was_not_written(zk_session, sink, job):
    move(job, [3, 2])
    job.persist(written := job.decide())
    write(sink, written)
    write_state(zk_session, "t", 0, (1, 1, [1, 2, 3]))
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [3, 2]}))
    job.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    write(sink, batch := job.decide())
    (completion,) = batch.of_kind(DecisionKind.COMPLETE_REASSIGNMENT)
    assert completion.failed
    assert topic(zk_session)[0].adding == {0: [3]}
    assert zk_session.get(PLAN) is not None
    removed = [orjson.loads(one.payload) for one in batch_events(batch) if one.key == "t"]
    assert {"topic": "t", "observed_again": True, "since": completion.offset} in removed


def stopped(batch):
    """(partition, broker) of what brokers are told to delete."""
    return {
        (partition, broker)
        for one in batch.of_kind(DecisionKind.STOP_REPLICAS)
        for partition, broker, delete, lost in zip(
            *(one.columns[name].tolist() for name in ("partition", "broker", "delete")),
            one.lost.tolist(),
            strict=True,
        )
        if delete and not lost
    }


def correct(session, sink, job, batch):
    """Let the job hear what its writes met, and read the topic again; return its batch then."""
    events = batch_events(batch)
    job.story.take([(one.kind, one.key, one.payload) for one in events])
    znode, version = topic(session)
    leaders = [state_of(session, "t", partition) for partition in sorted(znode.replicas)]
    job.story.observe(
        "t",
        [znode.replicas[partition] for partition in sorted(znode.replicas)],
        states=[
            stored(leader, isr, leader_epoch=epoch, controller_epoch=1, zk_version=at)
            for leader, epoch, isr, at in leaders
        ],
        zk_version=version,
        observed_again=True,
    )
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    for offset, one in enumerate(events, len(job.story.events) - 1 - len(events)):
        doubts.end(one, offset)
    corrected = job.decide()
    doubts.lose_rows(corrected.decisions)
    write(sink, corrected)
    doubts.lose_what_follows(corrected)
    assert not corrected.lost_writes
    return corrected


@pytest.mark.parametrize("isr", [[1], [1, 2, 3]])
def test_what_is_taken_back_is_deleted_though_a_partitions_write_met_another(
    zk_session, sink, job, isr
):
    """Also that of the other partitions of the request, whose reassignments end later too."""
    move(job, [3, 2])
    move(job, [3, 1], partition=1)
    job.persist(written := job.decide())
    write(sink, written)
    write_state(zk_session, "t", 0, (1, 1, isr))
    job.story.move("t", {0: None, 1: None})
    write(sink, batch := job.decide())
    Doubts().lose_what_follows(batch)
    assert topic(zk_session)[0].replicas == {0: [2, 1], 1: [1, 2]}
    assert stopped(batch) == {(0, 3), (1, 3)}
    corrected = correct(zk_session, sink, job, batch)
    assert stopped(corrected) == ({(0, 3)} if 3 in isr else set())
    leader, _, left, _ = state_of(zk_session, "t", 0)
    assert (leader, set(left)) == (1, {*isr} - {3})


def test_a_leader_that_is_taken_back_is_replaced_though_its_write_met_another(
    zk_session, sink, job
):
    move(job, [3, 2])
    job.story.alter("t", 0, [1, 3], leader_epoch=1, partition_epoch=1)
    job.persist(written := job.decide())
    write(sink, written)
    write_state(zk_session, "t", 0, (3, 1, [3, 1]))
    job.story.move("t", {0: None})
    write(sink, batch := job.decide())
    Doubts().lose_what_follows(batch)
    assert stopped(batch) == set(), "it leads"
    assert stopped(correct(zk_session, sink, job, batch)) == {(0, 3)}
    assert state_of(zk_session, "t", 0)[:3] == (1, 2, [1])


def test_who_asked_while_somebody_else_changed_the_topic_is_to_ask_again(zk_session, sink, job):
    zk_session.set("/brokers/topics/t", zk_session.get("/brokers/topics/t").data)
    move(job, [3, 2])
    write(sink, batch := job.decide())
    (answer,) = replies(batch, Doubts(), {})
    assert answer["error"] == ProtocolError.NOT_CONTROLLER
    assert all(one.lost.all() for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS))
    assert state_of(zk_session, "t", 0)[1] == 0


def test_another_epoch_moves_nothing(zk_session, sink, job):
    zk_session.set("/controller_epoch", b"9")
    zk_session.create(PLAN, reassignment_bytes({("t", 0): [2, 1]}))
    move(job, [2, 1], request_id=None)
    write(sink, batch := job.decide())
    assert batch.fenced
    assert topic(zk_session)[1] == 0
    assert zk_session.get(PLAN) is not None
