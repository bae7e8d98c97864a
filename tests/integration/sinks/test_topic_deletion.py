"""Topics deleted in a real ZooKeeper: everything goes, the mark last, and only what was meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.security import make_acl

from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.fixtures.story import OURSELVES
from tests.integration.sinks.support import (
    claimed,
    open_sink,
    state_of,
    tree,
    write,
    write_state,
)
from tests.unit.sinks.support import Job

TOPIC_ID, OTHER_ID = "xVg7K6qyTvmxpuD7RnqU_w", "xVg7K6qyTvmxpuD7RnqU_g"
ROOTS = ("/brokers/topics", "/config/topics", "/admin/delete_topics")


@pytest.fixture
def sink(zookeeper) -> Iterator[ZooKeeperSink]:
    with open_sink(zookeeper, max_ops_per_multi=7) as sink:
        yield sink


@pytest.fixture
def job(zk_session, sink) -> Job:
    """A job that has created topic t with 5 partitions."""
    version = claimed(zk_session)
    zk_session.ensure_path("/admin/delete_topics")
    job = Job()
    job.story.elect({1: 11, 2: 12}, epoch_zk_version=version)
    create(job)
    done(job, sink)
    return job


def create(job: Job, topic_id: str | None = TOPIC_ID) -> None:
    job.story.create("t", [[1, 2]] * 5, topic_id=topic_id)


def request(job: Job) -> None:
    job.story.write("delete_topic_requested", "t", request_id="d", topic="t")


def answer(job: Job) -> None:
    for id_ in (1, 2):
        told = {"broker_id": id_, "broker_epoch": 100 + id_, "topic": "t"}
        job.story.write(
            "stop_replica_answered", "t", partitions=[*range(5)], errors=[0] * 5, **told
        )


def done(job: Job, sink: ZooKeeperSink) -> DecidedBatch:
    batch = job.decide()
    write(sink, batch)
    return job.persist(batch)


def paths(session: ZkSession) -> set[str]:
    return tree(session, *ROOTS).keys() - set(ROOTS)


def test_a_request_is_marked_and_the_topic_goes_when_all_is_deleted(job, sink, zk_session):
    request(job)
    batch = done(job, sink)
    assert "/admin/delete_topics/t" in paths(zk_session)
    assert "/brokers/topics/t/partitions/4/state" in paths(zk_session)
    assert [reply["error"] for reply in replies(batch, Doubts(), {})] == [0]
    answer(job)
    zk_session.create("/brokers/topics/t/other", b"")
    zk_session.create("/brokers/topics/t/partitions/0/more", b"")
    done(job, sink)
    assert paths(zk_session) == set()


def test_a_mark_that_is_there_already_will_do(job, sink, zk_session):
    zk_session.create("/admin/delete_topics/t", b"by hand")
    request(job)
    batch = done(job, sink)
    assert not batch.lost_writes
    assert not any(one.failed for one in batch.decisions)


def test_a_deletion_that_was_made_before_a_crash_is_made_again_without_harm(job, sink, zk_session):
    request(job)
    done(job, sink)
    answer(job)
    batch = job.decide()
    write(sink, batch)
    write(sink, batch)
    assert not any(one.failed for one in batch.decisions)
    assert paths(zk_session) == set()


@pytest.mark.parametrize("again", [1, 2])
def test_a_name_is_deleted_and_used_again_in_one_batch(job, sink, zk_session, again):
    request(job)
    done(job, sink)
    answer(job)
    create(job, OTHER_ID)
    batch = job.decide()
    for _ in range(again):
        write(sink, batch)
    assert not batch.lost_writes
    assert not any(one.lost.any() for one in batch.decisions)
    assert zk_session.get("/brokers/topics/t").data == topic_bytes(
        TopicZNode({partition: [1, 2] for partition in range(5)}, OTHER_ID)
    )
    assert "/brokers/topics/t/partitions/4/state" in paths(zk_session)
    assert "/admin/delete_topics/t" not in paths(zk_session)


@pytest.fixture
def job_without_ids(zk_session, sink) -> Job:
    """A job that has created topic t, which has no id, and was asked to delete it."""
    version = claimed(zk_session)
    zk_session.ensure_path("/admin/delete_topics")
    job = Job()
    job.story.elect({1: 11, 2: 12}, epoch_zk_version=version)
    create(job, None)
    request(job)
    done(job, sink)
    return job


def test_a_topic_without_id_that_was_created_again_is_not_deleted_again(
    job_without_ids, sink, zk_session
):
    """The batch runs again after a crash; the leader has changed the ISR by itself meanwhile."""
    answer(job_without_ids)
    create(job_without_ids, None)
    batch = job_without_ids.decide()
    write(sink, batch)
    before = zk_session.get("/brokers/topics/t")
    write_state(zk_session, "t", 4, (1, 0, [1]))
    write(sink, batch)
    assert zk_session.get("/brokers/topics/t") == before
    assert state_of(zk_session, "t", 4) == (1, 0, [1], 1)
    assert state_of(zk_session, "t", 3) == (1, 0, [1, 2], 0)


def test_a_topic_without_id_goes_as_one_with_an_id(job_without_ids, sink, zk_session):
    answer(job_without_ids)
    batch = done(job_without_ids, sink)
    assert not any(one.failed for one in batch.decisions)
    assert paths(zk_session) == set()


def restrict(session: ZkSession, path: str, *, read: bool) -> None:
    """Let nobody change a znode or delete its children, or read it either."""
    session._kazoo.set_acls(path, [make_acl("world", "anyone", read=read, admin=True)])


def test_a_topic_that_cannot_be_deleted_keeps_its_mark(job, sink, zk_session):
    request(job)
    done(job, sink)
    restrict(zk_session, "/brokers/topics/t", read=True)
    answer(job)
    [deleted] = done(job, sink).of_kind(DecisionKind.DELETE_TOPIC)
    assert deleted.failed
    assert {"/brokers/topics/t", "/admin/delete_topics/t"} <= paths(zk_session)


@pytest.mark.parametrize("place", ["", "/partitions/0/state"])
def test_a_topic_that_may_not_be_read_costs_only_itself(job, sink, zk_session, place):
    job.story.create("u", [[1, 2]], topic_id=OTHER_ID)
    request(job)
    job.story.write("delete_topic_requested", "u", request_id="e", topic="u")
    done(job, sink)
    restrict(zk_session, f"/brokers/topics/u{place}", read=False)
    answer(job)
    for id_ in (1, 2):
        job.story.replicas_deleted(id_, "u", [0])
    batch = done(job, sink)
    assert [one.topic for one in batch.decisions if one.failed] == ["u"]
    left = zk_session.children("/admin/delete_topics")
    assert (left, zk_session.get("/brokers/topics/t")) == (["u"], None)


def test_another_topic_of_that_name_stays(job, sink, zk_session):
    request(job)
    done(job, sink)
    zk_session.set("/brokers/topics/t", topic_bytes(TopicZNode({0: [1]}, OTHER_ID)), -1)
    before = paths(zk_session)
    answer(job)
    done(job, sink)
    assert paths(zk_session) == before


def test_leftovers_go_only_where_there_is_no_topic(job, sink, zk_session):
    zk_session.create("/admin/delete_topics/t", b"")
    zk_session.create("/admin/delete_topics/u", b"")
    zk_session.create("/config/topics/u", b"{}")
    job.story.elected(2, 1)
    for topic in ("t", "u"):
        job.story.write("topic_deletion_requested", topic, topic=topic)
    job.story.write("resync_completed", topics=0)
    done(job, sink)
    assert "/admin/delete_topics/t" in paths(zk_session)
    assert not {"/config/topics/u", "/admin/delete_topics/u"} & paths(zk_session)


def test_the_mark_of_an_unknown_topic_goes_and_may_be_gone(job, sink, zk_session):
    zk_session.create("/admin/delete_topics/v", b"")
    for topic in ("v", "w"):
        job.story.write("topic_deletion_requested", topic, topic=topic)
    batch = done(job, sink)
    assert "/admin/delete_topics/v" not in paths(zk_session)
    assert not any(one.failed for one in batch.decisions)


def test_a_controller_that_was_replaced_deletes_nothing(job, sink, zk_session):
    request(job)
    done(job, sink)
    before = paths(zk_session)
    claim_controller(zk_session, OURSELVES, steal=True)
    answer(job)
    batch = job.decide()
    write(sink, batch)
    assert batch.fenced
    [deleted] = batch.of_kind(DecisionKind.DELETE_TOPIC)
    assert deleted.failed
    assert paths(zk_session) == before
