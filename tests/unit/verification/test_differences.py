"""What counts as a difference between a broker and ZooKeeper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.internal_topics import GROUP_TOPIC
from streaming.verification.cluster import Cluster, Leadership, Topic
from streaming.verification.differences import (
    Matter,
    Metadata,
    Replicas,
    Value,
    metadata_differences,
    replica_differences,
)

ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
HELD = Leadership(1, 5, (1, 2), (1, 2))
REACHED = frozenset({1, 2})
CLUSTER = Cluster(1, {}, {"t": Topic(ID, {0: HELD})}, frozenset({"going"}))
TOLD = Metadata(1, REACHED, {"t": Topic(ID, {0: HELD})}, frozenset(), has_ids=True)


def of_metadata(told: Metadata, cluster: Cluster = CLUSTER) -> dict[Matter, tuple[Value, Value]]:
    found = list(metadata_differences(cluster, 2, REACHED, told))
    assert all(one.subject.broker == 2 for one in found)
    return {one.subject.matter: (one.zookeeper, one.broker) for one in found}


def told_of(**fields: Any) -> Metadata:
    return TOLD._replace(topics={"t": Topic(ID, {0: HELD._replace(**fields)})})


def of_replicas(said: Replicas, cluster: Cluster = CLUSTER) -> list[tuple[Matter, Value, Value]]:
    found = replica_differences(cluster, 2, said)
    return [(one.subject.matter, one.zookeeper, one.broker) for one in found]


def test_a_broker_that_was_told_all_differs_in_nothing() -> None:
    assert of_metadata(TOLD) == {}
    assert of_replicas(Replicas({("t", 0): 0}, {("t", 0): "/data"}, {})) == []


@pytest.mark.parametrize(
    ("told", "matter", "values"),
    [
        (TOLD._replace(controller_id=-1), Matter.CONTROLLER, (1, -1)),
        (TOLD._replace(brokers=frozenset({2})), Matter.BROKERS, ([1, 2], [2])),
        (TOLD._replace(topics={}), Matter.TOPIC, (1, None)),
        (TOLD._replace(topics={"t": Topic(OTHER_ID, {0: HELD})}), Matter.TOPIC_ID, (ID, OTHER_ID)),
        (TOLD._replace(topics={"t": Topic(None, {0: HELD})}), Matter.TOPIC_ID, (ID, None)),
        (TOLD._replace(topics={"t": Topic(ID, {})}), Matter.PARTITION, (1, None)),
        (told_of(leader=2), Matter.LEADER, (1, 2)),
        (told_of(leader_epoch=4), Matter.LEADER_EPOCH, (5, 4)),
        (told_of(isr=(1,)), Matter.ISR, ([1, 2], [1])),
        (told_of(replicas=(2, 1)), Matter.REPLICAS, ([1, 2], [2, 1])),
    ],
)
def test_what_a_broker_tells_otherwise(
    told: Metadata, matter: Matter, values: tuple[Value, Value]
) -> None:
    assert of_metadata(told) == {matter: values}


def test_partitions_and_topics_that_zookeeper_has_not_are_told() -> None:
    more = Topic(ID, {0: HELD, 1: HELD})
    assert of_metadata(TOLD._replace(topics={"t": more})) == {Matter.PARTITION: (None, 1)}
    ghost = {"t": Topic(ID, {0: HELD}), "ghost": Topic(ID, {0: HELD})}
    assert of_metadata(TOLD._replace(topics=ghost)) == {Matter.TOPIC: (None, 1)}


def test_what_brokers_need_not_know_is_no_difference() -> None:
    going = {"t": Topic(ID, {0: HELD}), "going": Topic(ID, {0: HELD})}
    assert of_metadata(TOLD._replace(topics=going)) == {}, "it is being deleted"
    assert of_metadata(TOLD._replace(topics={}, hidden=frozenset({"t"}))) == {}
    without = TOLD._replace(topics={"t": Topic(None, {0: HELD})}, has_ids=False)
    assert of_metadata(without) == {}
    unled = replace(
        CLUSTER, topics={"t": Topic(ID, {0: HELD, 1: None}), "new": Topic(ID, {0: None})}
    )
    assert of_metadata(TOLD, unled) == {}, "never had a leader"


def test_a_broker_that_migrates_to_kraft_names_any_broker_as_the_controller() -> None:
    cluster = replace(CLUSTER, controller_id=3000, in_kraft=True)
    assert of_metadata(TOLD._replace(controller_id=2), cluster) == {}


def test_a_leader_that_is_not_reached_is_told_as_none() -> None:
    gone = HELD._replace(leader=3)
    cluster = replace(CLUSTER, topics={"t": Topic(ID, {0: gone})})
    assert of_metadata(told_of(leader=-1), cluster) == {}
    assert of_metadata(told_of(leader=1), cluster) == {Matter.LEADER: (-1, 1)}


def test_the_controller_leads_groups_where_it_coordinates_them() -> None:
    held = Leadership(1, 5, (1, 2), (1, 2))
    fresh = held._replace(leader_epoch=1)
    unled = held._replace(leader=-1)
    cluster = replace(
        CLUSTER, topics={GROUP_TOPIC: Topic(ID, {0: held, 1: fresh, 2: unled, 3: None})}
    )
    announced = cluster.with_groups_led_by(1000).topics[GROUP_TOPIC].partitions
    assert announced == {0: Leadership(1000, 4, (1, 2), (1, 2)), 1: fresh, 2: unled, 3: None}
    assert CLUSTER.with_groups_led_by(1000) is CLUSTER


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ProtocolError.NONE, None),
        (ProtocolError.OFFSET_NOT_AVAILABLE, None),
        (ProtocolError.LEADER_NOT_AVAILABLE, None),
        (ProtocolError.UNKNOWN_LEADER_EPOCH, "an older leader epoch"),
        (ProtocolError.FENCED_LEADER_EPOCH, "a newer leader epoch"),
        (ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, "no such replica"),
        (ProtocolError.NOT_LEADER_OR_FOLLOWER, "no such replica, or it does not lead"),
        (ProtocolError.KAFKA_STORAGE_ERROR, "a replica on a failed disk"),
        (ProtocolError.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT (7)"),
        (12345, "12345"),
    ],
)
def test_what_a_broker_says_of_its_replicas(code: int, said: str | None) -> None:
    expected = [] if said is None else [(Matter.REPLICA, 5, said)]
    assert of_replicas(Replicas({("t", 0): code}, {}, {})) == expected


def test_replicas_that_a_broker_should_not_have_and_failed_disks() -> None:
    at_three = HELD._replace(replicas=(1, 3))
    cluster = replace(CLUSTER, topics={"t": Topic(ID, {0: at_three, 1: None})})
    folders = {("t", 0): "/a", ("t", 1): "/a", ("t", 2): "/b", ("x", 0): "/b", ("going", 0): "/b"}
    assert of_replicas(Replicas({}, folders, {}), cluster) == [
        (Matter.STRAY_REPLICA, None, "/a"),
        (Matter.STRAY_REPLICA, None, "/b"),
        (Matter.STRAY_REPLICA, None, "/b"),
    ]
    failed = Replicas({}, {}, {"/b": "broken", "/a": "gone"})
    assert of_replicas(failed) == [(Matter.LOG_DIR, None, "/a: gone, /b: broken")]


def test_the_replicas_of_a_broker() -> None:
    assert [place for place, _ in CLUSTER.replicas_of(2)] == [("t", 0)]
    assert not list(CLUSTER.replicas_of(3))
