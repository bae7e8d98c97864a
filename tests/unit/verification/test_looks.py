"""What is asked of brokers, and what counts after several looks at them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.internal_topics import GROUP_TOPIC
from streaming.security.connector import Connector
from streaming.verification.cluster import Cluster, Leadership, Topic
from streaming.verification.differences import Matter
from streaming.verification.looks import LOOKS_MAX, Found, Looks
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.partition_rows import BrokerNode
from streaming.wire.requests import decode_request
from tests.unit.gateway.answering_broker import AnsweringBroker
from tests.unit.verification.believing_broker import ASKED, RANGES, Believer, broker_of, disk

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LISTENER = "INTERNAL"
HELD = Leadership(1, 5, (1, 2), (1, 2))
ON_DISK = [disk("/data", {("t", 0): False})]


def node(id_: int, port: int = 1, listener: str = LISTENER) -> BrokerNode:
    plain = SecurityProtocol.PLAINTEXT
    end = Endpoint(listener=listener, host="127.0.0.1", port=port, security_protocol=plain)
    return BrokerNode(id_, None, (end,))


CLUSTER = Cluster(1, {1: node(1), 2: node(2)}, {"t": Topic(ID, {0: HELD})})


def with_epoch(leader_epoch: int) -> Cluster:
    return replace(CLUSTER, topics={"t": Topic(ID, {0: HELD._replace(leader_epoch=leader_epoch)})})


def verified(stubs: Sequence[AnsweringBroker], *clusters: Cluster, timeout_s: float = 5.0) -> Found:
    """Look while ZooKeeper is as given, in the end as the last one; brokers are where stubs are."""
    coming = list(clusters)

    def read() -> Cluster:
        cluster = coming.pop(0) if len(coming) > 1 else coming[0]
        listening = {stub.id: node(stub.id, stub.port) for stub in stubs}
        there = {id_: listening.get(id_, one) for id_, one in cluster.brokers.items()}
        return replace(cluster, brokers=there)

    async def scenario() -> Found:
        for stub in stubs:
            await stub.start()
        try:
            return await Looks(read, Connector(), LISTENER, timeout_s).verify(0)
        finally:
            for stub in stubs:
                await stub.stop()

    return asyncio.run(scenario())


def both(believes: Cluster, **more: Any) -> list[AnsweringBroker]:
    """Return brokers 1 and 2, which believe the same."""
    return [broker_of(id_, Believer(believes, folders=ON_DISK, **more)) for id_ in (1, 2)]


def requests(stub: AnsweringBroker, api: ApiKey) -> list[dict[str, Any]]:
    asked = (decode_request(one, ASKED) for one in stub.requests)
    return [one.body for one in asked if one.header.api_key == api]


def told(found: Found) -> list[tuple[int, Matter]]:
    return [(one.subject.broker, one.subject.matter) for one in found.differences]


def test_one_look_is_enough_where_nothing_differs() -> None:
    stubs = both(CLUSTER)
    found = verified(stubs, CLUSTER)
    assert (found.differences, found.gaps) == ([], [])
    counts = [(one.topics, one.partitions, one.replicas) for one in found.asked.values()]
    assert counts == [(1, 1, 1)] * 2
    assert [len(stub.requests) for stub in stubs] == [3, 3], "metadata, offsets, disks"


def test_a_leader_is_asked_as_by_a_consumer_and_a_follower_as_by_who_debugs() -> None:
    stubs = both(CLUSTER)
    verified(stubs, CLUSTER)
    (of_leader,), (of_follower,) = (requests(stub, ApiKey.LIST_OFFSETS) for stub in stubs)
    assert (of_leader["replica_id"], of_follower["replica_id"]) == (-1, -2)
    (partition,) = of_follower["topics"][0]["partitions"]
    assert partition["current_leader_epoch"] == HELD.leader_epoch


def test_nobody_is_asked_about_replicas_of_who_has_no_leader() -> None:
    unled = replace(CLUSTER, topics={"t": Topic(ID, {0: HELD._replace(leader=-1)})})
    stubs = both(unled)
    found = verified(stubs, unled)
    assert (found.differences, found.gaps) == ([], [])
    assert not any(requests(stub, ApiKey.LIST_OFFSETS) for stub in stubs)


def test_what_differs_in_two_looks_in_a_row_counts() -> None:
    stubs = [both(with_epoch(4))[0], both(CLUSTER)[1]]
    found = verified(stubs, CLUSTER)
    assert told(found) == [(1, Matter.LEADER_EPOCH)]
    assert found.gaps == []
    looks = [len(requests(stub, ApiKey.METADATA)) for stub in stubs]
    assert looks == [2, 1], "who agreed is not asked again"


def test_what_was_under_way_is_no_difference() -> None:
    stubs = both(with_epoch(6))
    found = verified(stubs, CLUSTER, with_epoch(6))
    assert (found.differences, found.gaps) == ([], [])


def test_what_differs_now_and_then_is_no_difference() -> None:
    stubs = both(with_epoch(6))
    found = verified(stubs, with_epoch(5), with_epoch(7), with_epoch(5), with_epoch(6))
    assert (found.differences, found.gaps) == ([], [])


def test_what_never_stays_is_not_compared() -> None:
    stubs = both(with_epoch(0))
    found = verified(stubs, *map(with_epoch, range(1, LOOKS_MAX + 1)))
    assert found.differences == []
    assert found.gaps == [
        f"broker {id_}: 1 things changed from each look to the next" for id_ in (1, 2)
    ]


def test_a_broker_that_is_gone_meanwhile_is_not_compared() -> None:
    moved = {"t": Topic(ID, {0: HELD._replace(leader=2, leader_epoch=6)})}
    alone = Cluster(2, {2: node(2)}, moved)
    stubs = [both(with_epoch(4))[0], both(alone)[1]]
    found = verified(stubs, CLUSTER, alone)
    assert list(found.asked) == [2]
    assert told(found) == []


def test_a_replica_and_a_disk_that_are_not_as_they_should_be() -> None:
    stale = {("t", 0): ProtocolError.UNKNOWN_LEADER_EPOCH}
    disks = [
        disk("/data", {("t", 0): False, ("t", 7): True, ("x", 1): False}),
        disk("/broken", {}, ProtocolError.KAFKA_STORAGE_ERROR),
    ]
    stubs = [both(CLUSTER)[0], broker_of(2, Believer(CLUSTER, codes=stale, folders=disks))]
    found = verified(stubs, CLUSTER)
    assert [(*one.subject[1:], one.zookeeper, one.broker) for one in found.differences] == [
        (Matter.REPLICA, "t", 0, 5, "an older leader epoch"),
        (Matter.STRAY_REPLICA, "x", 1, None, "/data"),
        (Matter.LOG_DIR, None, None, None, "/broken: KAFKA_STORAGE_ERROR (56)"),
    ]


def test_topics_that_we_may_not_see_are_not_compared() -> None:
    stubs = both(CLUSTER, hidden=frozenset({"t"}))
    found = verified(stubs, CLUSTER)
    assert found.differences == []
    why = "topic t: we may not ask (DESCRIBE on it)"
    assert found.gaps == [f"broker {id_}: {why}" for id_ in (1, 2) for _ in range(2)]


def test_disks_that_we_may_not_see_are_not_compared() -> None:
    stubs = [broker_of(id_, Believer(CLUSTER)) for id_ in (1, 2)]
    found = verified(stubs, CLUSTER)
    why = "its disks: we may not ask (DESCRIBE on the cluster)"
    assert found.gaps == [f"broker {id_}: {why}" for id_ in (1, 2)]


def test_a_broker_that_cannot_be_asked_is_told() -> None:
    hangs_up, listening = both(CLUSTER)

    async def nothing(_: bytes) -> bytes | None:
        return None

    hangs_up.answer = nothing
    elsewhere = {3: node(3, listener="CLIENT")}
    cluster = replace(CLUSTER, brokers={**CLUSTER.brokers, **elsewhere})
    found = verified([hangs_up, listening], cluster)
    first, second = found.gaps
    assert first.startswith(f"broker 1: at 127.0.0.1:{hangs_up.port}: ConnectionError")
    assert second == (
        "broker 3: it has no address on listener 'INTERNAL' (inter.broker.listener.name)"
    )


@pytest.mark.parametrize(("api", "version"), [(ApiKey.METADATA, 6), (ApiKey.LIST_OFFSETS, 3)])
def test_a_broker_that_cannot_say_leader_epochs_is_told(api: ApiKey, version: int) -> None:
    old = broker_of(1, Believer(CLUSTER), ranges=RANGES | {int(api): (0, version)})
    (gap,) = verified([old, both(CLUSTER)[1]], CLUSTER).gaps
    assert f"serves {api.name.title().replace('_', '')} up to version {version} only" in gap


def test_a_broker_that_does_not_answer_is_waited_for_so_long_only() -> None:
    silent, other = both(CLUSTER)

    async def never(_: bytes) -> bytes | None:
        await asyncio.sleep(60)
        return None

    silent.answer = never
    (gap,) = verified([silent, other], CLUSTER, timeout_s=2.0).gaps
    assert gap == f"broker 1: at 127.0.0.1:{silent.port}: TimeoutError()"


def test_znodes_that_cannot_be_read_are_told() -> None:
    cluster = replace(CLUSTER, unread=["/brokers/ids/9: broken"])
    assert verified(both(CLUSTER), cluster).gaps == ["/brokers/ids/9: broken"]


def test_the_controller_says_that_it_leads_groups() -> None:
    held = Topic(ID, {0: HELD})
    cluster = Cluster(9, {1: node(1), 2: node(2), 9: node(9)}, {"t": held, GROUP_TOPIC: held})
    announced = cluster.with_groups_led_by(9)
    stubs = [*both(announced), broker_of(9, Believer(announced, folders=[disk("/ours", {})]))]
    found = verified(stubs, cluster)
    assert (found.differences, found.gaps) == ([], [])
    asked = [one["topics"] for one in requests(stubs[0], ApiKey.LIST_OFFSETS)]
    epochs = {
        topic["name"]: topic["partitions"][0]["current_leader_epoch"]
        for topics in asked
        for topic in topics
    }
    assert epochs == {"t": 5, GROUP_TOPIC: 4}


def test_brokers_say_that_it_leads_groups_while_it_does_not_answer() -> None:
    held = Topic(ID, {0: HELD})
    cluster = Cluster(9, {1: node(1), 2: node(2), 9: node(9)}, {"t": held, GROUP_TOPIC: held})
    found = verified(both(cluster.with_groups_led_by(9)), cluster)
    assert found.differences == []
    (gap,) = found.gaps
    assert gap.startswith("broker 9: at 127.0.0.1:1: ConnectionRefusedError")


def test_a_broker_that_leads_groups_is_a_broker() -> None:
    held = Topic(ID, {0: HELD})
    cluster = replace(CLUSTER, topics={"t": held, GROUP_TOPIC: held})
    found = verified(both(cluster), cluster)
    assert (found.differences, found.gaps) == ([], [])
