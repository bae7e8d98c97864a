"""Decisions in a real ZooKeeper: bytes, order, repetition, fencing."""

from __future__ import annotations

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, config_bytes, partition_state_bytes, topic_bytes
from streaming.zk.znodes.controller import ProducerIdBlock, producer_id_block_bytes
from tests.fixtures.states import stored
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.sinks.support import (
    TOPIC_ID,
    claimed,
    lost,
    state_of,
    story_with_everything,
    tree,
    write,
    write_state,
)


def state(leader, epoch, isr):
    return partition_state_bytes([leader], [epoch], [isr], 1, [0])[0]


def test_a_created_topic_is_byte_for_byte_what_kafka_writes(zk_session, sink, job):
    job.story.create("t", [[1, 2], [3, 1]], topic_id=TOPIC_ID)
    write(sink, batch := job.decide())
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
    write(sink, batch := job.decide())
    assert not batch.lost_writes
    assert tree(zk_session)["/config/topics/t"] == (config_bytes({"retention.ms": "5"}), 1)
    assert state_of(zk_session, "t", 0) == (1, 0, [1], 0)


def test_several_changes_of_a_partition_in_one_batch(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]])
    job.story.alter("t", 0, [1, 2])
    job.story.unregister(1)
    job.story.alter("t", 0, [2, 3], leader_epoch=1, partition_epoch=2)
    write(sink, batch := job.decide())
    assert not lost(batch)
    assert state_of(zk_session, "t", 0) == (2, 1, [2, 3], 3)


def test_a_chain_that_breaks_loses_all_that_follows(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]])
    write(sink, job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 3]))
    first = job.story.alter("t", 0, [1, 2])
    job.story.unregister(3)
    job.story.unregister(2)
    write(sink, batch := job.decide())
    assert [one.offset for one in batch.lost_writes] == [first, first + 2]
    assert [offset for offset, _ in lost(batch)] == [first, first + 1, first + 2]
    assert len(batch_events(batch)) == 1
    assert state_of(zk_session, "t", 0) == (1, 0, [1, 3], 1)


def test_a_batch_that_is_written_again_changes_and_loses_nothing(zk_session, sink, job):
    story_with_everything(job)
    states = dict(job.fold.states)
    write(sink, batch := job.decide())
    before = tree(zk_session)
    assert before["/latest_producer_id_block"] == (
        producer_id_block_bytes(ProducerIdBlock(3, 1000, 1999)),
        1,
    )
    for _ in range(2):
        job.fold.states = dict(states)
        job._folded -= 7
        write(sink, again := job.decide())
        assert tree(zk_session) == before
        assert not lost(again)
        assert not again.lost_writes
        assert replies(again, Doubts(), {}) == replies(batch, Doubts(), {})


def test_a_batch_that_is_written_again_from_any_point_ends_alike(zk_session, sink, job):
    """Each prefix of the znodes may be there already: they are deleted from the end."""
    story_with_everything(job)
    states = dict(job.fold.states)
    write(sink, job.decide())
    before = tree(zk_session)
    state_paths = [path for path in before if path.endswith("/state")]
    for path in reversed(state_paths):
        zk_session.delete(path)
        job.fold.states = dict(states)
        job._folded -= 7
        write(sink, again := job.decide())
        assert (tree(zk_session), lost(again), again.lost_writes) == (before, [], [])


def test_a_replaced_controller_writes_nothing_and_tells_nobody(zookeeper, zk_session, sink, job):
    job.story.create("t", [[1, 2]])
    write(sink, job.decide())
    before = tree(zk_session)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
        claim_controller(other, 7, steal=True)
        story_with_everything(job)
        write(sink, batch := job.decide())
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    assert tree(zk_session) == before
    assert batch.fenced == {1}
    assert batch.lost_writes == []
    for kind in (DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS):
        assert all(one.lost.all() for one in batch.of_kind(kind))
    assert batch_events(batch) == []
    assert {one["error"] for one in replies(batch, doubts, {})} == {ProtocolError.NOT_CONTROLLER}


def test_the_new_term_is_written_beside_a_fenced_old_one(zk_session, sink, job):
    job.story.create("t", [[1, 2]])
    write(sink, job.decide())
    version = claimed(zk_session)
    job.story.unregister(1)
    job.story.elected(2, version)
    job.story.register({2: 12, 3: 13})
    job.story.observe("t", [[1, 2]], states=[stored(1, [1, 2], controller_epoch=1)])
    loaded = job.story.write("resync_completed", topics=1)
    write(sink, batch := job.decide())
    Doubts().lose_what_follows(batch)
    assert (batch.fenced, batch.loaded_at) == ({version - 1}, loaded)
    assert [offset for offset, _ in lost(batch)] == [loaded - 4]
    assert state_of(zk_session, "t", 0) == (2, 1, [2], 1)


def test_more_writes_than_fit_one_multi(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3]] * 180)
    job.story.unregister(1)
    write(sink, batch := job.decide())
    assert not lost(batch)
    assert all(state_of(zk_session, "t", n) == (2, 1, [2, 3], 1) for n in range(180))
