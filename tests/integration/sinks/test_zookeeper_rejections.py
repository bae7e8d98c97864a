"""Writes that ZooKeeper rejects whatever the znode holds: no permission, too large."""

from __future__ import annotations

import orjson
import pytest

from state.decisions import DecisionKind
from state.limits import PARTITIONS_MAX
from state.protocol_errors import ProtocolError
from streaming.observers.known_topics import observed
from streaming.observers.overrides import Overrides
from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from streaming.sinks.write_failures import rejections
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.zk.client import ZkSession
from streaming.zk.znodes import parse_topic, partition_state_path, topic_path
from tests.fixtures.states import stored
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.sinks.support import TOPIC_ID, lost, state_of, tree

OWNER = ((31, "digest", "someone:x1nq8J5GOJVPY6zgzhtTtA9izLc="),)
TO_BE_READ = (1, "world", "anyone")
FREE = ((31, "world", "anyone"),)


class World:
    """What the job does with its batches, and who may do what to a znode."""

    def __init__(self, zookeeper, zk_session, sink: ZooKeeperSink, job) -> None:
        self.zookeeper, self.session, self.sink, self.job = zookeeper, zk_session, sink, job
        self.doubts = Doubts()

    def run(self):
        """One batch, as the pipeline does it; what comes of it is in the log then."""
        batch = self.job.decide()
        self.doubts.lose_rows(batch.decisions)
        self.sink.write(batch, self.doubts)
        self.doubts.lose_what_follows(batch)
        events = batch_events(batch)
        for place, event in enumerate(events):
            self.doubts.end(event, len(self.job.story.events) + place)
        self.job.story.take((one.kind, one.key, one.payload) for one in events)
        answers = replies(batch, self.doubts, {})
        self.doubts.forget_before(batch.end_offset or 0)
        return self.job.persist(batch), events, answers

    def replace(self, path: str, acl) -> None:
        """Make a znode anew, as it was, with other rights."""
        znode = self.session.get(path)
        self.session.delete(path)
        with ZkSession(self.zookeeper, SESSION_TIMEOUT_MS, default_acl=acl) as other:
            other.create(path, znode.data)


@pytest.fixture
def world(zookeeper, zk_session, sink, job) -> World:
    world = World(zookeeper, zk_session, sink, job)
    job.story.create("t", [[1, 2, 3], [1, 3, 2]], topic_id=TOPIC_ID)
    world.run()
    return world


def payload(event):
    return orjson.loads(event.payload)


def test_a_state_that_may_not_be_written_stays_as_it_is_until_it_may(world):
    world.replace(partition_state_path("t", 0), (*OWNER, TO_BE_READ))
    world.job.story.unregister(1)
    batch, events, _ = world.run()
    assert [partition for _, partition in lost(batch)] == [0]
    assert state_of(world.session, "t", 1) == (3, 1, [3, 2], 1), "it costs the other one nothing"
    (event,) = events
    assert payload(event) == {
        "topic": "t",
        "topic_id": TOPIC_ID,
        "cause": "rejected",
        "partitions": [0],
        "states": [stored(1, [1, 2, 3], controller_epoch=1)],
        "since": [batch.lost_writes[0].offset],
    }
    ((_, *subject, reason),) = rejections(batch)
    assert subject == ["t", 0]
    assert "NO_AUTH" in reason
    told = {"leader": world.job.image.columns["leader"].tolist()}
    assert told == {"leader": [1, 3]}, "nobody is told what is not written"

    batch, events, _ = world.run()
    assert (lost(batch), events) == ([], []), "it is not tried for ever"
    world.job.story.register({4: 14})
    batch, events, _ = world.run()
    assert [payload(one)["cause"] for one in events] == ["rejected"], "tried when brokers change"

    world.replace(partition_state_path("t", 0), FREE)
    world.job.story.register({5: 15})
    batch, events, _ = world.run()
    assert events == []
    assert state_of(world.session, "t", 0)[:3] == (2, 1, [2, 3])
    assert world.job.image.columns["leader"].tolist() == [2, 3]


def test_a_leader_asks_again_and_is_heard_when_the_state_may_be_written(world):
    world.replace(partition_state_path("t", 0), (*OWNER, TO_BE_READ))
    world.job.story.alter("t", 0, [1, 2])
    _, _, (answer,) = world.run()
    assert answer["partitions"] == [
        {"partition": 0, "error": ProtocolError.OPERATION_NOT_ATTEMPTED}
    ]
    world.replace(partition_state_path("t", 0), FREE)
    world.job.story.alter("t", 0, [1, 2])
    _, _, (answer,) = world.run()
    assert (answer["partitions"][0]["error"], answer["partitions"][0]["isr"]) == (0, [1, 2])
    assert state_of(world.session, "t", 0) == (1, 0, [1, 2], 1)


def test_a_state_that_may_not_even_be_read_leaves_the_partition_offline_in_sight(world):
    world.replace(partition_state_path("t", 0), OWNER)
    world.job.story.unregister(1)
    _, (event,), _ = world.run()
    assert payload(event)["states"] == [None]
    batch, events, _ = world.run()
    (refused,) = batch.of_kind(DecisionKind.REFUSE_TRANSITION)
    assert (refused.content["reasons"], refused.columns["partition"].tolist()) == (
        ["no_stored_state"],
        [0],
    )
    assert events == []


def test_a_topic_that_would_be_too_large_is_as_before_and_who_asked_hears_why(world):
    before = tree(world.session)
    world.job.story.register({2_000_000_000 + number: 11 + number for number in range(3)})
    asked = world.job.story.write(
        "create_partitions_requested", "t", request_id="c", topic="t", partitions=PARTITIONS_MAX
    )
    world.job.story.unregister(1)
    batch, (event,), (answer,) = world.run()
    assert (answer["error"], "ZooKeeper takes at most" in answer["message"]) == (
        ProtocolError.UNKNOWN_SERVER_ERROR,
        True,
    )
    assert tree(world.session) == before, "no folder of a partition that is not there"
    assert len(world.job.image) == 2
    assert (event.kind, payload(event)) == (
        "topic_removed",
        {"topic": "t", "observed_again": True, "since": asked},
    )

    znode = world.session.get(topic_path("t"))
    states: list[list[int | list[int]] | None] = [
        stored(1, [1, 2, 3], controller_epoch=1),
        stored(1, [1, 3, 2], controller_epoch=1),
    ]
    again = observed(
        "t", parse_topic(znode.data), znode.version, Overrides(None, None), states, unwritable=True
    )
    world.job.story.take([(again.kind, again.key, again.payload)])
    batch, events, _ = world.run()
    assert (events, batch.lost_writes) == ([], [])
    assert state_of(world.session, "t", 0) == (2, 1, [2, 3], 1), "the failover is not forgotten"


def test_partitions_that_may_not_be_created_are_created_when_they_may(world):
    """A tool made the topic under its own name, so that nobody else may put anything below it."""
    data = world.session.get(topic_path("t")).data
    with ZkSession(world.zookeeper, SESSION_TIMEOUT_MS, default_acl=(*OWNER, TO_BE_READ)) as other:
        other.create(topic_path("u"), data)
    world.job.story.write(
        "topic_observed", "u", topic="u", partitions=[0], replicas=[[1, 2]], zk_version=0
    )
    _, (event,), _ = world.run()
    assert (payload(event)["states"], payload(event)["uncreated"]) == ([None], [0])
    batch, events, _ = world.run()
    assert (events, batch.of_kind(DecisionKind.REFUSE_TRANSITION)) == ([], [])
    world.replace(topic_path("u"), FREE)
    world.job.story.register({4: 14})
    _, events, _ = world.run()
    assert events == []
    assert state_of(world.session, "u", 0) == (1, 0, [1, 2], 0)
