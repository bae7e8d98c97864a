"""Writes that meet what somebody else wrote, in a real ZooKeeper."""

from __future__ import annotations

import pytest

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from state.reply_bodies import ControllerApi
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.zk.znodes import TopicZNode, config_bytes, partition_state_bytes, topic_bytes
from streaming.zk.znodes.controller import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    producer_id_block_bytes,
)
from tests.fixtures.story import OURSELVES
from tests.integration.sinks.support import TOPIC_ID, lost, state_of, tree, write, write_state


@pytest.mark.parametrize("with_config", [True, False])
def test_a_topic_that_exists_is_left_alone_and_its_creation_failed(
    zk_session, sink, job, with_config
):
    there = topic_bytes(TopicZNode({0: [2], 1: [2]}, TOPIC_ID))
    zk_session.create("/brokers/topics/t", there)
    zk_session.ensure_path("/brokers/topics/t/partitions/0")
    zk_session.create(
        "/brokers/topics/t/partitions/0/state", partition_state_bytes([2], [9], [[2]], 1, [0])[0]
    )
    if with_config:
        zk_session.create("/config/topics/t", config_bytes({"cleanup.policy": "compact"}))
    job.story.create("t", [[1]])
    job.story.create("u", [[1]])
    job.story.unregister(1)
    write(sink, batch := job.decide())
    doubts = Doubts()
    doubts.lose_what_follows(batch)
    found = tree(zk_session)
    assert found["/brokers/topics/t"] == (there, 0)
    assert state_of(zk_session, "t", 0) == (2, 9, [2], 0), "its version would have fitted"
    if with_config:
        assert found["/config/topics/t"] == (config_bytes({"cleanup.policy": "compact"}), 0)
    assert state_of(zk_session, "u", 0) == (-1, 1, [1], 1)
    refused, accepted = replies(batch, doubts, {})
    assert (refused["error"], accepted["error"]) == (ProtocolError.TOPIC_ALREADY_EXISTS, 0)
    assert [(one.kind, one.key) for one in batch_events(batch)] == [("topic_removed", "t")]
    changes = batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
    untold = [one for one in changes if "t" in one.topics and not one.lost.any()]
    assert untold == [], "nobody hears of partitions that are not there"


def test_a_conflict_costs_the_others_nothing_and_says_what_is_there(zk_session, sink, job):
    job.story.create("t", [[1, 2, 3], [2, 1, 3], [1, 3, 2]])
    write(sink, job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 3]))
    asked = job.story.alter("t", 0, [1, 2])
    job.story.alter("t", 1, [2, 1])
    job.story.alter("t", 2, [1])
    write(sink, batch := job.decide())
    assert lost(batch) == [(asked, 0)]
    assert state_of(zk_session, "t", 0) == (1, 0, [1, 3], 1)
    assert state_of(zk_session, "t", 1) == (2, 0, [2, 1], 1)
    assert state_of(zk_session, "t", 2) == (1, 0, [1], 1)
    (event,) = batch_events(batch)
    assert b'"cause":"conflict","partitions":[0],"states":[[1,0,[1,3],1,0,1]]' in event.payload
    assert [one["partitions"][0]["error"] for one in replies(batch, Doubts(), {})] == [
        ProtocolError.INVALID_UPDATE_VERSION,
        ProtocolError.NONE,
        ProtocolError.NONE,
    ]
    job.story.take([(event.kind, event.key, event.payload)])
    write(sink, batch := job.decide())
    assert not batch.lost_writes
    assert state_of(zk_session, "t", 0) == (1, 1, [1, 3], 2), "bumped, so that the leader goes on"


def test_what_rests_on_a_lost_write_is_not_written_even_where_its_version_would_fit(
    zk_session, sink, job
):
    """The leader of an old broker shrank its ISR. An election from before we know must not win."""
    doubts = Doubts()
    job.story.create("t", [[1, 2, 3]])
    write(sink, job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1, 2]))
    job.story.unregister(3)  # expects version 0: lost
    write(sink, batch := job.decide())
    doubts.lose_what_follows(batch)
    (event,) = batch_events(batch)

    job.story.unregister(1)  # in the log before the correction: expects version 1, which is there
    doubts.end(event, len(job.story.events))
    job.story.take([(event.kind, event.key, event.payload)])
    batch = job.decide()
    late, corrected = batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
    doubts.lose_rows(batch.decisions)
    write(sink, batch)
    doubts.lose_what_follows(batch)
    assert (late.lost.tolist(), corrected.lost.tolist()) == ([True], [False])
    assert state_of(zk_session, "t", 0) == (2, 1, [2], 2)
    assert not batch.lost_writes


def delete_a_topic(story):
    story.replicas_deleted(2, "gone", [0])


def end_a_move_and_begin_another(story):
    story.move("moved", {0: [2]})
    story.move("moved", {1: [2]})


between_two_runs = pytest.mark.parametrize(
    "between", [delete_a_topic, end_a_move_and_begin_another]
)


@pytest.fixture
def job_with_others(zk_session, job):
    """A job that waits for the end of a deletion, and has a topic to move."""
    zk_session.ensure_path("/admin/delete_topics")
    job.story.create("gone", [[2]])
    job.story.create("moved", [[2, 1], [2, 1]])
    job.story.write("delete_topic_requested", "gone", request_id="d", topic="gone")
    return job


@between_two_runs
def test_what_rests_on_a_lost_write_of_its_own_batch_is_not_written_either(
    zk_session, sink, job_with_others, between
):
    job, story = job_with_others, job_with_others.story
    story.create("t", [[1, 2, 3]])
    write(sink, job.decide())
    write_state(zk_session, "t", 0, (1, 0, [1]))
    first = story.unregister(3)  # expects version 0: lost
    between(story)
    second = story.unregister(1)  # expects version 1, which is there
    write(sink, batch := job.decide())
    assert state_of(zk_session, "t", 0) == (1, 0, [1], 1), "LOST: what only 1 has"
    assert [(one.offset, one.topic) for one in batch.lost_writes] == [(first, "t")]
    untold = {one.offset for one in batch.of_kind(DecisionKind.STOP_REPLICAS) if one.lost.any()}
    assert untold == {first, second}
    (event,) = batch_events(batch)
    story.take([(event.kind, event.key, event.payload)])
    write(sink, batch := job.decide())
    assert not batch.lost_writes
    assert state_of(zk_session, "t", 0) == (-1, 1, [1], 2)


@between_two_runs
def test_producer_ids_that_rest_on_a_lost_block_are_not_given_out(
    zk_session, sink, job_with_others, between
):
    job, story = job_with_others, job_with_others.story
    write(sink, job.decide())
    theirs = producer_id_block_bytes(ProducerIdBlock(9, 5000, 5999))
    zk_session.create(PRODUCER_ID_BLOCK_PATH, theirs)
    story.ask_producer_ids(2)  # expects no block: lost
    between(story)
    story.ask_producer_ids(3)  # expects version 0, which is there
    write(sink, batch := job.decide())
    assert tree(zk_session)[PRODUCER_ID_BLOCK_PATH] == (theirs, 0)
    answers = [
        one for one in replies(batch, Doubts(), {}) if one["api"] == ControllerApi.PRODUCER_IDS
    ]
    assert [one["error"] for one in answers] == [
        ProtocolError.UNKNOWN_SERVER_ERROR,
        ProtocolError.UNKNOWN_SERVER_ERROR,
    ]


def test_a_missing_znode_is_a_conflict_of_its_own(zk_session, sink, job):
    job.story.create("t", [[1, 2], [2, 1]])
    write(sink, job.decide())
    zk_session.delete("/brokers/topics/t/partitions/0/state")
    job.story.unregister(1)
    write(sink, batch := job.decide())
    assert [partition for _, partition in lost(batch)] == [0]
    (event,) = batch_events(batch)
    assert b'"partitions":[0],"states":[null]' in event.payload


def test_a_broken_znode_is_told_apart_in_the_log_and_costs_itself_only(
    zk_session, sink, job, caplog
):
    job.story.create("t", [[1, 2], [2, 1]])
    write(sink, job.decide())
    zk_session.set("/brokers/topics/t/partitions/0/state", b"{broken")
    job.story.unregister(1)
    write(sink, batch := job.decide())
    assert state_of(zk_session, "t", 1) == (2, 1, [2], 1)
    (event,) = batch_events(batch)
    assert b'"states":[null]' in event.payload
    assert "partition t-0: broken partition state" in caplog.text
    job.story.take([(event.kind, event.key, event.payload)])
    write(sink, batch := job.decide())
    assert not batch.lost_writes, "it is not tried for ever"


def test_an_assignment_that_somebody_else_changed(zk_session, sink, job):
    there = topic_bytes(TopicZNode({0: [OURSELVES, 2]}))
    zk_session.create("/brokers/topics/t", there)
    zk_session.set("/brokers/topics/t", there)
    job.story.observe("t", [[OURSELVES, 2]], zk_version=0)
    write(sink, batch := job.decide())
    (rewrite,) = batch.of_kind(DecisionKind.REWRITE_ASSIGNMENT)
    assert rewrite.failed
    assert tree(zk_session)["/brokers/topics/t"] == (there, 1)
