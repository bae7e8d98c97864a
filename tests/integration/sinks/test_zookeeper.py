"""Decisions in a real ZooKeeper: bytes, order, conflicts, fencing, repetition."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from state.decisions import DecisionKind
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.doubts import Doubts
from streaming.sinks.outcomes import batch_events, replies
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.errors import ZooKeeperUnreachable
from streaming.zk.znodes import TopicZNode, config_bytes, partition_state_bytes, topic_bytes
from streaming.zk.znodes.controller import ProducerIdBlock, producer_id_block_bytes
from tests.fixtures.story import OURSELVES
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.sinks.support import claimed, state_of, tree, wait_for, write_state
from tests.unit.sinks.support import Job

TOPIC_ID = "xVg7K6qyTvmxpuD7RnqU_w"


def opened(connect: str, timeout_ms: int = SESSION_TIMEOUT_MS) -> ZkSession:
    session = ZkSession(connect, timeout_ms)
    session.connect(2_000)
    return session


@pytest.fixture
def sink(zookeeper) -> Iterator[ZooKeeperSink]:
    sink = ZooKeeperSink(
        lambda: opened(zookeeper), max_ops_per_multi=50, max_in_flight=4, stopped=lambda: False
    )
    yield sink
    sink.close()


@pytest.fixture
def job(zk_session) -> Job:
    """A job that has claimed the role and knows three brokers."""
    version = claimed(zk_session)
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=version)
    job.persist(job.decide())
    return job


def state(leader, epoch, isr):
    return partition_state_bytes([leader], [epoch], [isr], 1, [0])[0]


def lost(batch: DecidedBatch) -> list[tuple[int, int]]:
    """(offset, partition) of the lost rows."""
    return [
        (one.offset, partition)
        for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
        for partition, gone in zip(
            one.columns["partition"].tolist(), one.lost.tolist(), strict=True
        )
        if gone
    ]


def test_a_created_topic_is_byte_for_byte_what_kafka_writes(zk_session, sink, job):
    job.story.create("t", [[1, 2], [3, 1]], topic_id=TOPIC_ID)
    sink.write(batch := job.decide())
    assert not lost(batch)
    topic = topic_bytes(TopicZNode({0: [1, 2], 1: [3, 1]}, TOPIC_ID))
    assert tree(zk_session) == {
        "/brokers/topics": (b"", 0),
        "/brokers/topics/t": (topic, 0),
        "/brokers/topics/t/partitions": (b"", 0),
        "/brokers/topics/t/partitions/0": (b"", 0),
        "/brokers/topics/t/partitions/0/state": (state(1, 0, [1, 2]), 0),
        "/brokers/topics/t/partitions/1": (b"", 0),
        "/brokers/topics/t/partitions/1/state": (state(3, 0, [3, 1]), 0),
        "/config/topics": (b"", 0),
        "/config/topics/t": (config_bytes({"retention.ms": "5"}), 0),
    }
    created = [
        zk_session.get(path).czxid
        for path in (
            "/config/topics/t",
            "/brokers/topics/t",
            "/brokers/topics/t/partitions",
            "/brokers/topics/t/partitions/0",
            "/brokers/topics/t/partitions/0/state",
        )
    ]
    assert created == sorted(created)
    assert created[1] < created[2] < created[4], "each level in a transaction of its own"


def test_a_left_over_configuration_is_replaced(zk_session, sink, job):
    zk_session.create("/config/topics/t", config_bytes({"cleanup.policy": "compact"}))
    job.story.create("t", [[1]])
    sink.write(batch := job.decide())
    assert not batch.conflicts
    assert tree(zk_session)["/config/topics/t"] == (config_bytes({"retention.ms": "5"}), 1)
    assert state_of(zk_session, "t", 0) == (1, 0, [1], 0)


@pytest.mark.parametrize("with_config", [True, False])
def test_a_topic_that_exists_is_left_alone_and_its_creation_failed(
    zk_session, sink, job, with_config
):
    there = topic_bytes(TopicZNode({0: [2], 1: [2]}, TOPIC_ID))
    zk_session.create("/brokers/topics/t", there)
    zk_session.ensure_path("/brokers/topics/t/partitions/0")
    zk_session.create("/brokers/topics/t/partitions/0/state", state(2, 9, [2]))
    if with_config:
        zk_session.create("/config/topics/t", config_bytes({"cleanup.policy": "compact"}))
    job.story.create("t", [[1]])
    job.story.create("u", [[1]])
    job.story.unregister(1)
    sink.write(batch := job.decide())
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    found = tree(zk_session)
    assert found["/brokers/topics/t"] == (there, 0)
    assert state_of(zk_session, "t", 0) == (2, 9, [2], 0), "its version would have fitted"
    if with_config:
        assert found["/config/topics/t"] == (config_bytes({"cleanup.policy": "compact"}), 0)
    assert state_of(zk_session, "u", 0) == (-1, 1, [1], 1)
    refused, accepted = replies(batch, doubts)
    assert (refused["error"], accepted["error"]) == (36, 0)
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "t")]
    changes = batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
    untold = [one for one in changes if "t" in one.extra["topics"] and not one.lost.any()]
    assert untold == [], "nobody hears of partitions that are not there"


def test_a_conflict_costs_the_others_nothing_and_says_what_is_there(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3], [2, 1, 3], [1, 3, 2]])
    sink.write(job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 3]))
    asked = job.story.alter("t", 0, [1, 2])
    job.story.alter("t", 1, [2, 1])
    job.story.alter("t", 2, [1])
    sink.write(batch := job.decide())
    assert lost(batch) == [(asked, 0)]
    assert state_of(zk_session, "t", 0) == (1, 0, [1, 3], 1)
    assert state_of(zk_session, "t", 1) == (2, 0, [2, 1], 1)
    assert state_of(zk_session, "t", 2) == (1, 0, [1], 1)
    (event,) = batch_events(batch)
    assert b'"cause":"conflict","partitions":[0],"states":[[1,0,[1,3],1,0,1]]' in event.payload
    assert [one["partitions"][0]["error"] for one in replies(batch, Doubts())] == [95, 0, 0]
    job.story.take([(event.kind, event.key, event.payload)])
    sink.write(batch := job.decide())
    assert not batch.conflicts
    assert state_of(zk_session, "t", 0) == (1, 1, [1, 3], 2), "bumped, so that the leader goes on"


def test_what_rests_on_a_lost_write_is_not_written_even_where_its_version_would_fit(
    zk_session, sink, job
):
    """The leader of an old broker shrank its ISR. An election from before we know must not win."""
    doubts = Doubts()
    job.story.create("t", [[1, 2, 3]])
    sink.write(job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 2]))
    job.story.unregister(3)  # expects version 0: lost
    sink.write(batch := job.decide())
    doubts.lose_what_follows(batch)
    (event,) = batch_events(batch)

    job.story.unregister(1)  # in the log before the correction: expects version 1, which is there
    doubts.end(event, len(job.story.events))
    job.story.take([(event.kind, event.key, event.payload)])
    batch = job.decide()
    late, corrected = batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
    doubts.lose_rows(batch.decisions)
    sink.write(batch)
    doubts.lose_what_follows(batch)
    assert (late.lost.tolist(), corrected.lost.tolist()) == ([True], [False])
    assert state_of(zk_session, "t", 0) == (2, 1, [2], 2)
    assert not batch.conflicts


def test_several_changes_of_a_partition_in_one_batch(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]])
    job.story.alter("t", 0, [1, 2])
    job.story.unregister(1)
    job.story.alter("t", 0, [2, 3], leader_epoch=1, partition_epoch=2)
    sink.write(batch := job.decide())
    assert not lost(batch)
    assert state_of(zk_session, "t", 0) == (2, 1, [2, 3], 3)


def test_a_chain_that_breaks_loses_all_that_follows(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]])
    sink.write(job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 3]))
    first = job.story.alter("t", 0, [1, 2])
    job.story.unregister(3)
    job.story.unregister(2)
    sink.write(batch := job.decide())
    assert [offset for offset, _ in lost(batch)] == [first, first + 2]
    assert len(batch_events(batch)) == 1
    assert state_of(zk_session, "t", 0) == (1, 0, [1, 3], 1)


def story_with_everything(job):
    job.story.create("t", [[1, 2, 3], [2, 3, 1]], topic_id=TOPIC_ID)
    job.story.alter("t", 0, [1, 2])
    job.story.unregister(1)
    job.story.ask_producer_ids(2)
    job.story.ask_producer_ids(3)
    job.story.create("u", [[2]])
    job.story.shut_down(2)


def test_a_batch_that_is_written_again_changes_and_loses_nothing(zk_session, sink, job):
    story_with_everything(job)
    states = dict(job.fold.states)
    sink.write(batch := job.decide())
    before = tree(zk_session)
    assert before["/latest_producer_id_block"] == (
        producer_id_block_bytes(ProducerIdBlock(3, 1000, 1999)),
        1,
    )
    for _ in range(2):
        job.fold.states = dict(states)
        job._folded -= 7
        sink.write(again := job.decide())
        assert tree(zk_session) == before
        assert not lost(again)
        assert not again.conflicts
        assert replies(again, Doubts()) == replies(batch, Doubts())


def test_a_batch_that_is_written_again_from_any_point_ends_alike(zk_session, sink, job):
    """Each prefix of the znodes may be there already: they are deleted from the end."""
    story_with_everything(job)
    states = dict(job.fold.states)
    sink.write(job.decide())
    before = tree(zk_session)
    state_paths = [path for path in before if path.endswith("/state")]
    for path in reversed(state_paths):
        zk_session.delete(path)
        job.fold.states = dict(states)
        job._folded -= 7
        sink.write(again := job.decide())
        assert (tree(zk_session), lost(again), again.conflicts) == (before, [], [])


def test_a_replaced_controller_writes_nothing_and_tells_nobody(zookeeper, zk_session, sink, job):
    job.story.create("t", [[1, 2]])
    sink.write(job.decide())
    before = tree(zk_session)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
        claim_controller(other, 7, steal=True)
        story_with_everything(job)
        sink.write(batch := job.decide())
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    assert tree(zk_session) == before
    assert batch.fenced == {1}
    assert batch.conflicts == []
    for kind in (DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS):
        assert all(one.lost.all() for one in batch.of_kind(kind))
    assert batch_events(batch) == []
    assert {one["error"] for one in replies(batch, doubts)} == {41}


def test_the_new_term_is_written_beside_a_fenced_old_one(zk_session, sink, job):
    job.story.create("t", [[1, 2]])
    sink.write(job.decide())
    version = claim_controller(zk_session, OURSELVES, steal=True).epoch_zk_version
    job.story.unregister(1)
    job.story.elected(2, version)
    job.story.register({2: 12, 3: 13})
    job.story.write(
        "topic_observed",
        "t",
        topic="t",
        partitions=[0],
        replicas=[[1, 2]],
        states=[[1, 0, [1, 2], 1, 0, 0]],
    )
    loaded = job.story.write("resync_completed", topics=1)
    sink.write(batch := job.decide())
    Doubts().lose_what_follows(batch)
    assert (batch.fenced, batch.loaded_at) == ({version - 1}, loaded)
    assert [offset for offset, _ in lost(batch)] == [loaded - 4]
    assert state_of(zk_session, "t", 0) == (2, 1, [2], 1)


def test_a_missing_znode_is_a_conflict_of_its_own(zk_session, sink, job):
    job.story.create("t", [[1, 2], [2, 1]])
    sink.write(job.decide())
    zk_session.delete("/brokers/topics/t/partitions/0/state")
    job.story.unregister(1)
    sink.write(batch := job.decide())
    assert [partition for _, partition in lost(batch)] == [0]
    (event,) = batch_events(batch)
    assert b'"partitions":[0],"states":[null]' in event.payload


def test_a_broken_znode_is_told_apart_in_the_log_and_costs_itself_only(
    zk_session, sink, job, caplog
):
    job.story.create("t", [[1, 2], [2, 1]])
    sink.write(job.decide())
    zk_session.set("/brokers/topics/t/partitions/0/state", b"{broken")
    job.story.unregister(1)
    sink.write(batch := job.decide())
    assert state_of(zk_session, "t", 1) == (2, 1, [2], 1)
    (event,) = batch_events(batch)
    assert b'"states":[null]' in event.payload
    assert "partition t-0: broken partition state" in caplog.text
    job.story.take([(event.kind, event.key, event.payload)])
    sink.write(batch := job.decide())
    assert not batch.conflicts, "it is not tried for ever"


def test_an_assignment_that_somebody_else_changed(zk_session, sink, job):
    there = topic_bytes(TopicZNode({0: [OURSELVES, 2]}))
    zk_session.create("/brokers/topics/t", there)
    zk_session.set("/brokers/topics/t", there)
    job.story.write(
        "topic_observed",
        "t",
        topic="t",
        partitions=[0],
        replicas=[[OURSELVES, 2]],
        zk_version=0,
    )
    sink.write(batch := job.decide())
    (rewrite,) = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    assert rewrite.failed
    assert tree(zk_session)["/brokers/topics/t"] == (there, 1)


def test_more_writes_than_fit_one_multi(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]] * 180)
    job.story.unregister(1)
    sink.write(batch := job.decide())
    assert not lost(batch)
    assert all(state_of(zk_session, "t", n) == (2, 1, [2, 3], 1) for n in range(180))


class OwnServer:
    """A sink on a server that can be taken away."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self.server = server
        self.stopped = False
        self.sessions = 0
        self.sink = ZooKeeperSink(
            self.open, max_ops_per_multi=10, max_in_flight=2, stopped=lambda: self.stopped
        )

    def open(self) -> ZkSession:
        self.sessions += 1
        session = ZkSession(self.server.connect_string, 1_000)
        session.connect(500)
        return session


def started(server: EmbeddedZooKeeper) -> tuple[OwnServer, Job]:
    own = OwnServer(server)
    with ZkSession(server.connect_string, 10_000) as session:
        version = claimed(session)
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=version)
    job.decide()
    return own, job


def test_a_batch_waits_for_zookeeper_and_is_written_in_a_new_session(zookeeper_server, caplog):
    own, job = started(zookeeper_server)
    story_with_everything(job)
    batch = job.decide()
    zookeeper_server.kill()
    writing = threading.Thread(target=own.sink.write, args=(batch,), daemon=True)
    writing.start()
    wait_for("a try in vain", lambda: "batches wait for ZooKeeper" in caplog.text)
    assert writing.is_alive()
    zookeeper_server.start()
    writing.join(30)
    assert not writing.is_alive()
    assert own.sessions > 2
    assert not lost(batch)
    with ZkSession(zookeeper_server.connect_string, 10_000) as session:
        assert state_of(session, "t", 1) == (3, 2, [3], 2)
    own.sink.close()


def test_a_job_that_is_to_end_does_not_wait_for_zookeeper(zookeeper_server):
    own, job = started(zookeeper_server)
    story_with_everything(job)
    batch = job.decide()
    zookeeper_server.kill()
    own.stopped = True
    with pytest.raises(ZooKeeperUnreachable):
        own.sink.write(batch)
    own.sink.close()


def test_a_session_that_is_lost_between_stages_forgets_no_conflict(
    zk_session, sink, job, monkeypatch
):
    """What the first try noted is noted again: it is not taken over half."""
    from streaming.sinks import zookeeper as module
    from streaming.zk.errors import SessionLost

    zk_session.create("/brokers/topics/t", b"{}")
    job.story.create("t", [[1]])
    job.story.create("u", [[1, 2]])
    batch = job.decide()
    real = module.FencedWriter.write
    calls = []

    def write(self, ops):
        calls.append(len(ops))
        if len(calls) == 3:
            raise SessionLost("as told")
        return real(self, ops)

    monkeypatch.setattr(module.FencedWriter, "write", write)
    sink.write(batch)
    assert [(one.topic, one.partition) for one in batch.conflicts] == [("t", None)]
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "t")]
    assert state_of(zk_session, "u", 0) == (1, 0, [1, 2], 0)
    assert len(calls) > 3
