"""Recorded logs for jobs that are killed: each leads to every write of what it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER
from state.cluster.machine import FIRST_REBALANCE_DELAY_MS
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, topic_bytes
from streaming.zk.znodes.admin import reassignment_bytes
from streaming.zk.znodes.controller import PRODUCER_ID_BLOCK_PATH
from streaming.zk.znodes.delegation_tokens import token_path
from tests.fixtures.story import Story
from tests.fixtures.znodes import preferred_election_bytes

PLAN, ELECTION = "/admin/reassign_partitions", "/admin/preferred_replica_election"
DELETIONS = "/admin/delete_topics"
TOPIC_ID, OTHER_ID = "xVg7K6qyTvmxpuD7RnqU_w", "xVg7K6qyTvmxpuD7RnqU_g"

Ports = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A log, what it finds in ZooKeeper, and whether somebody else writes there meanwhile.

    answers_recorded: what brokers answer to StopReplica is in the log already.
    """

    tell: Callable[[Ports, int], Story]
    prepare: Callable[[ZkSession], None]
    meddled: bool = False
    answers_recorded: bool = True


def put_topic_of_others(session: ZkSession) -> None:
    """What story_of_partitions finds in ZooKeeper."""
    session.create("/brokers/topics/there", topic_bytes(TopicZNode({0: [3]})))


def story_of_partitions(ports: Ports, version: int) -> Story:
    """Everything that writes partitions: creations, failures, returns, ISR changes, shutdowns; and
    producer ids; and two writes that meet what somebody else wrote.
    """
    story = Story()
    rebalance = {"auto.leader.rebalance.enable": True}
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version, **rebalance)
    story.create("t", [[1, 2, 3], [2, 3, 1]], topic_id=TOPIC_ID)
    story.alter("t", 0, [1, 2])
    story.create("there", [[3, 1]])
    story.unregister(1)
    story.create("u", [[2], [3]])
    story.register({1: ports[1], 4: ports[4]}, add=200)
    story.ask_producer_ids(2)
    story.alter("t", 1, [2, 3], leader_epoch=1, partition_epoch=1)
    story.register({3: ports[3]}, add=300, how="bounced")
    story.create("there", [[2]])
    story.ask_producer_ids(2)
    story.shut_down(2)
    story.unregister(2)
    story.remove("u", [[2], [3]])
    story.create("v", [[4, 1]])
    armed_ms = story.events[2].time_ms + FIRST_REBALANCE_DELAY_MS
    story.write("timer_due", timer=LEADER_REBALANCE_TIMER, deadline_ms=armed_ms)
    return story


def ask_for_deletions(session: ZkSession) -> None:
    """What story_of_deletions finds in ZooKeeper."""
    for topic in ("u", "nobody"):
        session.ensure_path(f"{DELETIONS}/{topic}")


def story_of_deletions(ports: Ports, version: int) -> Story:
    """Topics deleted on request and by znode, while a broker is dead, while one is moved, under a
    name that is used again, and of a topic that nobody knows.
    """
    story = Story()
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version)
    story.create("t", [[1, 2], [2, 3]], topic_id=TOPIC_ID)
    story.create("u", [[1, 3]])
    story.create("v", [[1, 2]])
    story.move("v", {0: [3]})
    story.write("delete_topic_requested", "t", request_id="d-1", topic="t")
    story.unregister(3)
    story.replicas_deleted(1, "t", [0])
    story.replicas_deleted(2, "t", [0, 1])
    story.observe("u", [[1, 3]])
    for topic in ("u", "nobody"):
        story.write("topic_deletion_requested", topic, topic=topic)
    story.write("delete_topic_requested", "v", request_id="d-2", topic="v")
    story.replicas_deleted(1, "u", [0])
    story.create("t", [[1]], topic_id=OTHER_ID)
    story.register({3: ports[3]}, add=200)
    story.alter("v", 0, [1, 2, 3], leader_epoch=2, partition_epoch=2)
    story.replicas_deleted(3, "t", [1], epoch=203)
    story.replicas_deleted(3, "u", [0], epoch=203)
    story.create("t", [[3, 1]], topic_id=OTHER_ID)
    story.replicas_deleted(3, "v", [0], epoch=203)
    story.create("u", [[2, 3]])
    story.write("delete_topic_requested", "u", request_id="d-3", topic="u")
    return story


def story_without_answers(ports: Ports, version: int) -> Story:
    """Deletions that end when the brokers themselves answer."""
    story = Story()
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version)
    for topic in ("t", "u", "v"):
        story.create(topic, [[1, 2], [2, 3]])
    story.write("delete_topic_requested", "t", request_id="d", topic="t")
    story.observe("u", [[1, 2], [2, 3]])
    for topic in ("u", "nobody"):
        story.write("topic_deletion_requested", topic, topic=topic)
    return story


def ask_for_moves(session: ZkSession) -> None:
    """What story_of_moves finds in ZooKeeper."""
    session.ensure_path("/admin")
    session.create(PLAN, reassignment_bytes({("t", 0): [3, 2], ("nobody", 0): [1]}))
    session.create(ELECTION, preferred_election_bytes([("t", 0)]))
    for name in ("expired", "renewed"):
        session.ensure_path(token_path(name))
    session.set(token_path("renewed"), b"until tomorrow")


def story_of_moves(ports: Ports, version: int) -> Story:
    """Reassignments by znode and on request that end at once, later, and never; with a target that
    dies, taken back and replaced; elections, new partitions; delegation tokens that have expired.
    """
    story = Story()
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version)
    story.create("t", [[1, 2], [2, 1]], topic_id=TOPIC_ID)
    story.move("t", {0: [3, 2]}, request_id=None)
    story.move("nobody", {0: [1]}, request_id=None)
    story.move("t", {1: [3, 1]})
    story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    story.unregister(3)
    story.move("t", {1: None})
    story.register({3: ports[3]}, add=200)
    story.alter("t", 0, [2, 3], leader_epoch=3, partition_epoch=3)
    story.elect_preferred("t", [0])
    story.write("admin_znode_observed", path=ELECTION, zk_version=0)
    grown = {"request_id": "g", "topic": "t", "partitions": 3, "assignment": [[3, 2]]}
    story.write("create_partitions_requested", "t", **grown)
    tokens = [
        {"token_id": name, "owner": "User:u", "expired_at_ms": 5, "zk_version": 0}
        for name in ("expired", "renewed")
    ]
    story.write("delegation_tokens_expired", tokens=tokens)
    story.move("t", {2: [2, 1]})
    story.move("t", {2: [1], 0: [2, 1]})
    story.alter("t", 2, [3, 2, 1], leader_epoch=2, partition_epoch=2, broker_epoch=203)
    story.unregister(1)
    story.move("t", {0: [2, 3]})
    story.register({1: ports[1]}, add=200)
    story.create("alone", [[3]])
    return story


def story_of_names_used_again(ports: Ports, version: int) -> Story:
    """Topics, with and without an id, that are deleted and created again in one batch of four
    events.
    """
    story = Story()
    story.elect({1: ports[1]}, epoch_zk_version=version)
    story.create("t", [[1]], topic_id=TOPIC_ID)
    story.create("u", [[1]])
    for topic in ("t", "u"):
        story.write("delete_topic_requested", topic, request_id=f"d-{topic}", topic=topic)
    story.ask_producer_ids(1)
    for topic, topic_id in (("t", OTHER_ID), ("u", None)):
        story.replicas_deleted(1, topic, [0])
        story.create(topic, [[1]], topic_id=topic_id)
    return story


def story_of_producer_ids(ports: Ports, version: int) -> Story:
    """Requests for producer ids, in more than one batch."""
    story = Story()
    story.elect({id_: ports[id_] for id_ in (1, 2)}, epoch_zk_version=version)
    for broker in (1, 2, 1):
        story.ask_producer_ids(broker)
    return story


def finding_producer_ids(data: bytes) -> Scenario:
    """Requests for producer ids where the znode of the last block is there already."""
    return Scenario(
        story_of_producer_ids, lambda session: session.create(PRODUCER_ID_BLOCK_PATH, data)
    )


USED_AGAIN = Scenario(story_of_names_used_again, lambda session: session.ensure_path(DELETIONS))

ANSWERED = Scenario(story_without_answers, ask_for_deletions, answers_recorded=False)

SCENARIOS = {
    "partitions": Scenario(story_of_partitions, put_topic_of_others, meddled=True),
    "deletions": Scenario(story_of_deletions, ask_for_deletions),
    "moves": Scenario(story_of_moves, ask_for_moves),
}
