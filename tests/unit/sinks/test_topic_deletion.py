"""Topics in deletion: what brokers are told, what their answers say, what a new job repeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import orjson
import pytest

from state.decisions import DecisionKind
from state.events import Event, parse_payload
from state.merge import MergedDecision
from state.protocol_errors import ProtocolError
from streaming.image.cluster_image import ClusterImage
from streaming.image.restore import image_of, unfinished_deletions
from streaming.sinks.answer_events import answer_events
from streaming.sinks.batch import DecidedBatch, SinkDecision, opened
from streaming.sinks.channel import Answer
from streaming.sinks.doubts import Doubts
from streaming.sinks.plan import SharedRequest
from streaming.sinks.topic_deletion import lose_undeleted
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.wire.apis import ApiKey
from streaming.zk.client import ZkSession
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import TopicZNode, topic_bytes, topic_deletion_path, topic_path
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from tests.property.control_zookeeper import MemorySession
from tests.unit.sinks.support import Job, planner_of

OLD_ID, NEW_ID = "xVg7K6qyTvmxpuD7RnqU_w", "xVg7K6qyTvmxpuD7RnqU_Q"


def deleting() -> Job:
    """A job whose brokers 1, 2 and 3 are to delete topic t; topic u stays."""
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create("t", ((1, 2, 3), (2, 3, 1)))
    job.story.create("u", ((1, 2),))
    job.persist(job.decide())
    job.story.observe("t", ((1, 2, 3), (2, 3, 1)))
    job.story.write("topic_deletion_requested", "t", topic="t")
    return job


def stops(requests: list[SharedRequest]) -> list[SharedRequest]:
    return [one for one in requests if one.api is ApiKey.STOP_REPLICA]


def answer(request: SharedRequest, errors: dict[int, int], whole: int = 0) -> list:
    listed = [
        {"topic_name": "t", "partition_index": partition, "error_code": error}
        for partition, error in errors.items()
    ]
    said = Answer(2, 102, request, {"error_code": whole, "partition_errors": listed})
    return answer_events(said, Job().image)


def test_brokers_are_told_that_partitions_are_deleted_and_then_to_delete_them():
    job = deleting()
    plan = planner_of(job.image).plan(job.persist(job.decide()).decisions)
    assert plan.keys() == {1, 2, 3}
    for requests in plan.values():
        metadata, stop = requests
        assert metadata.api is ApiKey.UPDATE_METADATA
        assert metadata.rows.leader.tolist() == [-2, -2]
        assert metadata.rows.leader_epoch.tolist() == [0, 0]
        assert stop.api is ApiKey.STOP_REPLICA
        assert stop.rows.delete_partition.tolist() == [True, True]
        assert stop.rows.leader_epoch.tolist() == [-2, -2]


def test_the_image_forgets_a_topic_when_its_deletion_starts():
    job = deleting()
    assert job.image.topic_names() == ["t", "u"]
    job.persist(job.decide())
    assert job.image.topic_names() == ["u"]
    assert image_of(job.fold.machines()).topic_names() == ["u"]


def test_a_deletion_and_another_change_in_one_batch_are_told_apart():
    job = deleting()
    job.story.alter("u", 0, [1], leader_epoch=0, partition_epoch=0)
    job.persist(job.decide())
    assert job.image.topic_names() == ["u"]
    assert job.image.columns["isr"][:, 0].tolist() == [1]


@pytest.mark.parametrize(
    ("errors", "whole", "said"),
    [
        (
            {0: ProtocolError.NONE, 1: ProtocolError.KAFKA_STORAGE_ERROR},
            ProtocolError.NONE,
            [ProtocolError.NONE, ProtocolError.KAFKA_STORAGE_ERROR],
        ),
        (
            {0: ProtocolError.NONE},
            ProtocolError.NONE,
            [ProtocolError.NONE, ProtocolError.UNKNOWN_SERVER_ERROR],
        ),
        ({}, ProtocolError.UNKNOWN_SERVER_ERROR, [ProtocolError.UNKNOWN_SERVER_ERROR] * 2),
    ],
)
def test_answers_about_deleted_replicas_become_an_event(errors, whole, said):
    job = deleting()
    plan = planner_of(job.image).plan(job.persist(job.decide()).decisions)
    [event] = answer(stops(plan[2])[0], errors, whole)
    parse_payload(Event(0, 0, event.kind, event.key, event.payload))
    assert (event.kind, event.key) == ("stop_replica_answered", "t")
    assert orjson.loads(event.payload) == {
        "broker_id": 2,
        "broker_epoch": 102,
        "topic": "t",
        "partitions": [0, 1],
        "errors": said,
    }


@pytest.mark.parametrize("whole", [11, 77])
def test_an_answer_that_the_broker_or_we_are_replaced_says_nothing(whole):
    job = deleting()
    plan = planner_of(job.image).plan(job.persist(job.decide()).decisions)
    assert answer(stops(plan[2])[0], {}, whole) == []


def test_a_replica_that_is_only_stopped_is_not_answered_for():
    job = deleting()
    job.persist(job.decide())
    job.story.unregister(3)
    job.story.write(
        "controlled_shutdown_requested", request_id="r", broker_id=2, broker_epoch=102, version=3
    )
    plan = planner_of(job.image).plan(job.persist(job.decide()).decisions)
    [stopped] = stops(plan[2])
    assert not stopped.rows.delete_partition.any()
    assert answer(stopped, {}) == []


def test_a_new_job_tells_brokers_again_what_they_have_not_answered_for():
    job = deleting()
    job.persist(job.decide())
    job.story.write(
        "stop_replica_answered",
        "t",
        broker_id=2,
        broker_epoch=102,
        topic="t",
        partitions=[0, 1],
        errors=[0, 0],
    )
    job.decide()
    machines = job.fold.machines()
    told_again = opened(unfinished_deletions(machines))
    plan = planner_of(image_of(machines)).plan(told_again)
    assert plan.keys() == {1, 2, 3}
    for metadata, *_ in plan.values():
        assert metadata.api is ApiKey.UPDATE_METADATA
        assert metadata.rows.leader.tolist() == [-2, -2]
    assert stops(plan[2]) == []
    for broker in (1, 3):
        [stop] = stops(plan[broker])
        assert stop.rows.delete_partition.tolist() == [True, True]
        assert stop.rows.leader_epoch.tolist() == [-2, -2]


def test_the_image_names_what_is_being_deleted_until_it_is_gone():
    job = deleting()
    job.persist(job.decide())
    assert job.image.deleting == {"t"}
    assert ClusterImage.from_snapshot(job.image.snapshot()).deleting == {"t"}
    assert image_of(job.fold.machines()).deleting == {"t"}
    for id_ in (1, 2, 3):
        told = {"broker_id": id_, "broker_epoch": 100 + id_, "topic": "t"}
        job.story.write("stop_replica_answered", "t", partitions=[0, 1], errors=[0, 0], **told)
    job.persist(job.decide())
    assert job.image.deleting == set()


def test_a_topic_that_took_the_name_is_seen_though_our_server_lags_behind(monkeypatch):
    """lose_undeleted reads by a session of the job, deletions are seen by one of the front."""
    session = SimpleNamespace(topic_id=OLD_ID)
    session.sync = lambda: setattr(session, "topic_id", NEW_ID)

    def read(session, paths):
        assert paths == [topic_path("t"), topic_deletion_path("t")]
        return SimpleNamespace(data=[topic_bytes(TopicZNode({0: [1]}, session.topic_id)), b""])

    monkeypatch.setattr("streaming.sinks.topic_deletion.read_many", read)
    block = SinkDecision(
        MergedDecision(0, 0, DecisionKind.CHANGE_PARTITIONS, b""),
        columns={"topic": np.zeros(2, dtype=np.int32)},
        content={"topics": ["t"], "topic_ids": [OLD_ID]},
        lost=np.zeros(2, dtype=bool),
    )
    lose_undeleted(session, [block])
    assert block.lost.all()


def stored(topic_id: str | None, *, marked: bool) -> MemorySession:
    """A ZooKeeper in which there is t, with this id."""
    session = MemorySession()
    roots = ("/brokers", "/brokers/topics", "/admin", "/admin/delete_topics", "/config")
    for root in (*roots, "/config/topics", CONTROLLER_EPOCH_PATH):
        session.put(root, b"1")
    session.put(topic_path("t"), topic_bytes(TopicZNode({0: [1, 2]}, topic_id)))
    if marked:
        session.put(topic_deletion_path("t"), b"")
    return session


def rewrite(topic_id: str | None) -> tuple[DecisionKind, dict]:
    body = {"topic_id": topic_id, "expected_version": 0, "assignment": {"0": [2, 1]}}
    return DecisionKind.REWRITE_ASSIGNMENT, {**body, "adding": {}, "removing": {}}


def delete(topic_id: str | None) -> tuple[DecisionKind, dict]:
    return DecisionKind.DELETE_TOPIC, {"topic_id": topic_id, "leftovers": False}


MARK = (DecisionKind.MARK_TOPIC_DELETION, {})


def write(session: MemorySession, *decided: tuple[DecisionKind, dict]) -> DecidedBatch:
    """Write what was decided about t on one event after another."""
    decisions = [
        MergedDecision(at, 0, kind, orjson.dumps({**body, "topic": "t", "epoch_zk_version": 0}))
        for at, (kind, body) in enumerate(decided)
    ]
    batch = DecidedBatch(1, opened(decisions), dict.fromkeys(range(len(decided)), 0), len(decided))
    sink = ZooKeeperSink(lambda: cast(ZkSession, session), WriteLimits(), stopped=lambda: False)
    sink.write(batch, Doubts())
    return batch


@pytest.mark.parametrize("times", [1, 2])
def test_a_topic_that_gets_its_id_back_in_the_batch_is_deleted(times):
    """A tool that knows no ids rewrote its znode; the last broker answered in the same batch."""
    session = stored(None, marked=True)
    for _ in range(times):
        batch = write(session, rewrite(OLD_ID), delete(OLD_ID))
        assert topic_path("t") not in session.nodes
        assert topic_deletion_path("t") not in session.nodes
    assert not batch.decisions[1].failed


@pytest.mark.parametrize(
    ("deleted", "there", "earlier"),
    [
        (OLD_ID, NEW_ID, MARK),
        (OLD_ID, NEW_ID, rewrite(OLD_ID)),
        (OLD_ID, None, MARK),
        (None, NEW_ID, rewrite(None)),
        (None, None, rewrite(None)),
    ],
)
def test_a_batch_that_is_run_again_leaves_the_znode_of_the_topic_that_took_the_name(
    deleted, there, earlier
):
    """The rewrite expects the version that the new znode has; a mark would have it deleted."""
    session = stored(there, marked=False)
    before = dict(session.nodes)
    batch = write(session, earlier, delete(deleted))
    assert session.nodes == before
    assert batch.lost_writes == []


def test_a_topic_without_an_id_may_be_marked_and_deleted_in_one_batch():
    session = stored(None, marked=False)
    write(session, MARK, delete(None))
    assert topic_path("t") not in session.nodes
    assert topic_deletion_path("t") not in session.nodes
