"""Brokers of 2.8 and of old inter-broker protocols, with racks, under our control.

They do what brokers of 3.9 no longer do: look the controller up among the registrations, write
their ISRs themselves, and create topics on every node they know, on ours as well. The tools of 2.8
that write ZooKeeper themselves are run here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from tests.e2e.real_cluster import OURS, Kind, RealCluster, running
from tests.e2e.shared import Shared
from tests.e2e.test_tools import described, in_sync, plan
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, OLD, KafkaTools
from tests.fixtures.zookeeper import zookeeper_without_multiread

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

_CONFIG = {
    "num.partitions": "8",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "2",
}
_KINDS = {
    1: Kind(NEW, _CONFIG | {"broker.rack": "a", "inter.broker.protocol.version": "2.6"}),
    2: Kind(OLD, _CONFIG | {"broker.rack": "b"}),
    3: Kind(OLD, _CONFIG | {"broker.rack": "c", "inter.broker.protocol.version": "2.6"}),
}


def old_cluster(folder: Path) -> AbstractContextManager[RealCluster]:
    """Such brokers, with the ZooKeeper of their time."""
    zookeeper = zookeeper_without_multiread(folder / "zookeeper")
    return running(folder, _KINDS, spark=False, zookeeper=zookeeper)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[RealCluster]]:
    with Shared(lambda: old_cluster(tmp_path_factory.mktemp("old"))) as clusters:
        yield clusters


@pytest.fixture
def cluster(clusters: Shared[RealCluster]) -> RealCluster:
    return clusters.get()


@pytest.fixture
def old(cluster: RealCluster, tmp_path: Path) -> KafkaTools:
    """The tools of 2.8, straight at ZooKeeper."""
    return KafkaTools(OLD, ["--zookeeper", cluster.connect], tmp_path)


@pytest.fixture
def at_gateway(cluster: RealCluster, tmp_path: Path) -> KafkaTools:
    return KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)


def led_by_brokers(cluster: RealCluster, topic: str, replicas: int) -> None:
    """Wait until a topic is on brokers alone, and in sync there."""

    def settled() -> bool:
        assignment = cluster.replicas(topic)
        states = [cluster.state(topic, int(number)) for number in assignment]
        return bool(assignment) and all(
            OURS not in ids and len(state.get("isr", ())) == len(ids) == replicas
            for ids, state in zip(assignment.values(), states, strict=True)
        )

    wait_for(f"{topic} on brokers alone", settled)


def test_topics_by_way_of_zookeeper(
    cluster: RealCluster, old: KafkaTools, at_gateway: KafkaTools
) -> None:
    size = ("--partitions", "6", "--replication-factor", "2")
    old("kafka-topics", "--create", "--topic", "drawn", *size, "--config", "flush.ms=9")
    old("kafka-topics", "--create", "--topic", "given", "--replica-assignment", "1:2,2:3")
    for topic in ("drawn", "given"):
        led_by_brokers(cluster, topic, 2)
    assert {"drawn", "given"} <= set(old("kafka-topics", "--list").split())
    assert "flush.ms=9" in old("kafka-topics", "--describe", "--topic", "drawn")
    old("kafka-topics", "--alter", "--topic", "drawn", "--partitions", "12")
    wait_for("the growth", lambda: len(cluster.replicas("drawn")) == 12)
    led_by_brokers(cluster, "drawn", 2)
    shown = described(at_gateway, "drawn")
    assert sorted(shown) == list(range(12))
    assert not any(OURS in one["replicas"] for one in shown.values())
    for topic in ("drawn", "given"):
        old("kafka-topics", "--delete", "--topic", topic)
        wait_for(f"the end of {topic}", lambda topic=topic: not cluster.replicas(topic))


def test_configs_by_way_of_zookeeper(
    cluster: RealCluster, old: KafkaTools, at_gateway: KafkaTools
) -> None:
    at_gateway("kafka-topics", "--create", "--topic", "kept", "--replica-assignment", "1,2")
    in_sync(cluster, "kept", 2, 1)
    topic = ("--entity-type", "topics", "--entity-name", "kept")
    old("kafka-configs", "--alter", *topic, "--add-config", "max.message.bytes=4321")
    assert "max.message.bytes=4321" in old("kafka-configs", "--describe", *topic)

    def told() -> bool:
        return "max.message.bytes=4321" in at_gateway("kafka-configs", "--describe", *topic)

    wait_for("the brokers' notice", told)
    old("kafka-configs", "--alter", *topic, "--delete-config", "max.message.bytes")
    user = ("--entity-type", "users", "--entity-name", "alice")
    secret = "SCRAM-SHA-256=[iterations=4096,password=secret]"
    old("kafka-configs", "--alter", *user, "--add-config", secret)
    assert "SCRAM-SHA-256" in cluster.json("/config/users/alice")["config"]


def test_moves_and_elections_by_way_of_zookeeper(
    cluster: RealCluster, old: KafkaTools, at_gateway: KafkaTools
) -> None:
    at_gateway("kafka-topics", "--create", "--topic", "moved", "--replica-assignment", "1:2,2:3")
    in_sync(cluster, "moved", 2, 2)
    targets = {("moved", 0): [3, 2], ("moved", 1): [3, 2]}
    move = ("--reassignment-json-file", plan(old, "moved.json", targets))
    throttled = ("--throttle", "10000000")
    started = old("kafka-reassign-partitions", "--execute", *move, *throttled)
    assert "Successfully started partition reassignment" in started
    wait_for("the move", lambda: cluster.replicas("moved") == {"0": [3, 2], "1": [3, 2]})
    wait_for("its end", lambda: not cluster.json("/admin/reassign_partitions"))
    done = old("kafka-reassign-partitions", "--verify", *move)
    assert len(re.findall(r"moved-\d is complete\.", done)) == 2
    assert cluster.json("/config/topics/moved")["config"] == {}

    in_sync(cluster, "moved", 2, 2)
    assert cluster.state("moved", 1)["leader"] == 2
    chosen = old.file("chosen.json", '{"partitions": [{"topic": "moved", "partition": 1}]}')
    old("kafka-preferred-replica-election", "--path-to-json-file", chosen)
    wait_for("the preferred leader", lambda: cluster.state("moved", 1)["leader"] == 3)
    path = "/admin/preferred_replica_election"
    wait_for("the request's end", lambda: cluster.session.get(path) is None)


def test_auto_creation_draws_our_node_and_it_is_replaced(cluster: RealCluster) -> None:
    """Brokers place a topic by the racks of all nodes: all of them have one, ours as well."""
    for broker_id, topic in ((1, "made-by-1"), (2, "made-by-2")):
        producer = KafkaProducer(
            bootstrap_servers=cluster.brokers[broker_id].bootstrap_server,
            acks="all",
            max_block_ms=90_000,
            request_timeout_ms=60_000,
        )
        producer.send(topic, b"first").get(90)
        producer.close()
        led_by_brokers(cluster, topic, 3)
        logs = "".join(cluster.broker_log(id_) for id_ in cluster.brokers)
        drawn = re.search(rf"Creating topic {topic} .* assignment (.*)", logs)
        assert drawn is not None
        assert str(OURS) in drawn[1]


def test_a_coordinators_topic_is_created_when_the_gateway_is_asked(cluster: RealCluster) -> None:
    consumer: Any = KafkaConsumer(
        bootstrap_servers=cluster.gateway, group_id="readers", request_timeout_ms=60_000
    )
    consumer.subscribe(["made-by-1"])

    def joined() -> bool:
        consumer.poll(timeout_ms=500)
        return bool(cluster.replicas("__consumer_offsets"))

    wait_for("the coordinators' topic", joined)
    led_by_brokers(cluster, "__consumer_offsets", 2)
    consumer.close()


def test_controlled_shutdown_of_2_8_finds_us_among_the_registrations(
    cluster: RealCluster, at_gateway: KafkaTools
) -> None:
    assert cluster.json(f"/brokers/ids/{OURS}")["rack"] == "a"
    at_gateway("kafka-topics", "--create", "--topic", "relieved", "--replica-assignment", "2:3,2:1")
    in_sync(cluster, "relieved", 2, 2)
    before = len(cluster.broker_log(2))
    assert cluster.brokers[2].terminate(120)
    said = cluster.broker_log(2)[before:]
    assert "Controlled shutdown succeeded" in said
    assert "unclean shutdown" not in said
    leaders = [cluster.state("relieved", number)["leader"] for number in (0, 1)]
    assert leaders == [3, 1]
    cluster.brokers[2].start()
    in_sync(cluster, "relieved", 2, 2)


def test_isr_notifications_of_protocols_before_2_7(
    cluster: RealCluster, at_gateway: KafkaTools
) -> None:
    """A leader of 3.9 and one of 2.8 write their ISRs by themselves; what we and all brokers tell
    clients follows.
    """
    topic, leaders, follower = "noticed", (1, 3), 2
    place = ",".join(f"{leader}:{follower}" for leader in leaders)
    at_gateway("kafka-topics", "--create", "--topic", topic, "--replica-assignment", place)
    in_sync(cluster, topic, 2, 2)
    written = [cluster.state(topic, number)["leader_epoch"] for number in (0, 1)]
    cluster.brokers[follower].kill()
    for number, leader in enumerate(leaders):
        wait_for("a loss", lambda at=number, by=leader: cluster.state(topic, at)["isr"] == [by])
    cluster.brokers[follower].start()
    in_sync(cluster, topic, 2, 2)
    for number, epoch in enumerate(written):
        assert cluster.state(topic, number)["leader_epoch"] > epoch
    full = [sorted((leader, follower)) for leader in leaders]
    for told in [cluster.gateway, *(one.bootstrap_server for one in cluster.brokers.values())]:
        asked = KafkaTools(NEW, ["--bootstrap-server", told], at_gateway.folder)
        wait_for(
            f"full ISRs at {told}",
            lambda asked=asked: [one["isr"] for one in described(asked, topic).values()] == full,
        )
    wait_for(
        "no notification left", lambda: not cluster.session.children("/isr_change_notification")
    )


@pytest.mark.parametrize("version", [NEW, OLD])
def test_both_clients_find_usable_versions_in_a_mixed_cluster(
    cluster: RealCluster, tmp_path: Path, version: str
) -> None:
    tools = KafkaTools(version, ["--bootstrap-server", cluster.gateway], tmp_path)
    topic = f"versions-{version.replace('.', '-')}"
    tools("kafka-topics", "--create", "--topic", topic, "--replica-assignment", "1:2:3")
    in_sync(cluster, topic, 1, 3)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    assert "segment.bytes=" in tools("kafka-configs", "--describe", *entity, "--all")
    assert re.search(rf"\(id: {OURS} rack: \S+\) -> \(", tools("kafka-broker-api-versions"))
    tools("kafka-consumer-groups", "--list", "--timeout", "60000")
