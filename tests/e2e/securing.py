"""What is done with brokers that want to know who connects, however they find out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from streaming.embedded.ports import LOOPBACK
from streaming.wire.apis import ApiKey
from streaming.zk.znodes import CONTROLLER_PATH
from tests.e2e.first_clients import ask
from tests.e2e.real_cluster import OURS, RealCluster
from tests.e2e.test_tools import in_sync
from tests.e2e.waiting import wait_for
from tests.fixtures.certificates import Authority
from tests.fixtures.kafka_tools import NEW, KafkaTools

SECURED = "INTERNAL"
"""The brokers' second listener, on which they talk among themselves."""
OFFSETS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
}
_READ_MS = 120_000
_WANTED = ("--replica-assignment", "1:2:3")


def pem(authority: Authority, name: str) -> dict[str, str]:
    """The properties with which Kafka speaks TLS."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.keystore(name)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
    }


def gateway(cluster: RealCluster) -> str:
    """Where this node has the secured listener: the second one, so its second port."""
    return f"{LOOPBACK}:{cluster.port + 1}"


def brokers(cluster: RealCluster) -> list[str]:
    """Where brokers have it."""
    return [f"{LOOPBACK}:{one.internal_port}" for one in cluster.brokers.values()]


def create(cluster: RealCluster, folder: Path, topic: str, how: Mapping[str, str]) -> None:
    """Create a topic of three replicas at the gateway, as a client with these properties."""
    tools = KafkaTools(NEW, ["--bootstrap-server", gateway(cluster)], folder)
    config = tools.properties(topic, how)
    tools("kafka-topics", "--create", "--topic", topic, *_WANTED, "--command-config", config)
    in_sync(cluster, topic, 1, 3)


def drive_from_the_start(cluster: RealCluster, folder: Path, how: Mapping[str, str]) -> None:
    """Be announced on the secured listener, create a topic there as a client with these properties,
    and drive brokers.
    """
    (plain, ours) = cluster.json(f"/brokers/ids/{OURS}")["endpoints"]
    assert plain.startswith("CLIENT://") and ours == f"{SECURED}://{gateway(cluster)}"
    create(cluster, folder, "moved", how)
    drive(cluster, "moved")


def drive(cluster: RealCluster, topic: str) -> None:
    """Have the leader leave in order and return, and the next one die and return."""
    before = len(cluster.broker_log(1))
    assert cluster.brokers[1].terminate(120)
    assert "Controlled shutdown request returned successfully" in cluster.broker_log(1)[before:]
    wait_for("the other leader", lambda: cluster.state(topic, 0)["leader"] == 2)
    cluster.brokers[1].start()
    in_sync(cluster, topic, 1, 3)  # by AlterPartition

    cluster.brokers[2].kill()
    wait_for("a leader that lives", lambda: cluster.state(topic, 0)["leader"] in (1, 3))
    cluster.brokers[2].start()
    in_sync(cluster, topic, 1, 3)


def read_in_turns(cluster: RealCluster, topic: str, client: Mapping[str, Any]) -> None:
    """Have two members of a group read after one another: the second begins where the first, whose
    commit is acknowledged once followers have fetched it from us, has ended.
    """
    producer = KafkaProducer(bootstrap_servers=brokers(cluster), acks="all", **client)
    for number in range(20):
        producer.send(topic, b"%d" % number).get(120)
    producer.close()
    group = f"of-{topic}"
    wait_for("this coordinator", lambda: coordinated_here(cluster, group))
    joined = cluster.status()["gateway"].get("requests_JoinGroup", 0)
    completed = cluster.status()["groups"]["completed_rebalances"]
    for first, last in ((0, 9), (10, 19)):
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=brokers(cluster),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=10,
            consumer_timeout_ms=_READ_MS,
            **client,
        )
        got = [int(one.value) for one in islice(consumer, 10)]
        assert got == list(range(first, last + 1))
        consumer.commit()
        consumer.close()
    assert cluster.status()["gateway"]["requests_JoinGroup"] > joined
    assert cluster.status()["groups"]["completed_rebalances"] >= completed + 2


def coordinated_here(cluster: RealCluster, group: str) -> bool:
    """Whether all brokers say so; they lead the groups' topic until it is taken over."""
    for broker in cluster.brokers.values():
        at = (LOOPBACK, broker.client_port)
        found = ask(at, ApiKey.FIND_COORDINATOR, 0, {"key": group})
        if found["error_code"] or found["port"] != cluster.port:
            return False
    return True


def read_with_librdkafka(cluster: RealCluster, topic: str, client: Mapping[str, Any]) -> None:
    """Have librdkafka write a record, read it as a member of a group, and commit."""
    connected = {**client, "bootstrap.servers": ",".join(brokers(cluster))}
    producer = Producer(connected)
    producer.produce(topic, b"0")
    assert producer.flush(120) == 0
    group = {"group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer(connected | group | {"enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        message = wait_for("a record", lambda: consumer.poll(1.0))
        assert (message.error(), message.value()) == (None, b"0")
        (committed,) = consumer.commit(message=message, asynchronous=False)
        assert (committed.error, committed.offset) == (None, 1)
    finally:
        consumer.close()


def rights_follow(
    cluster: RealCluster, folder: Path, java: Callable[[str], Mapping[str, str]], principal: str
) -> None:
    """Have alice, who may everything, see a topic, and bob only when his principal may.

    java: how one of them connects.
    """
    create(cluster, folder, "seen", java("alice"))
    tools = KafkaTools(NEW, ["--bootstrap-server", gateway(cluster)], folder)

    def seen_by(user: str) -> set[str]:
        config = tools.properties(user, java(user))
        return set(tools("kafka-topics", "--list", "--command-config", config).split())

    assert "seen" in seen_by("alice")
    assert "seen" not in seen_by("bob")
    allowed = ("--add", "--allow-principal", principal, "--operation", "Describe")
    config = tools.properties("admin", java("alice"))
    tools("kafka-acls", *allowed, "--topic", "seen", "--command-config", config)
    wait_for("the right", lambda: "seen" in seen_by("bob"))


def resign(cluster: RealCluster) -> int:
    """Go, and return which broker controls then."""
    cluster.stop_supervising()
    cluster.supervisor.stop()

    def controller() -> int:
        return int(cluster.json(CONTROLLER_PATH).get("brokerid", 0))

    wait_for("a controller", lambda: controller() > 0)
    assert controller() in cluster.brokers
    return controller()


def leave_to_brokers(cluster: RealCluster, topic: str, folder: Path) -> None:
    """Go, and have a broker's controller go on with what is there."""
    resign(cluster)
    servers = cluster.brokers[1].bootstrap_server
    tools = KafkaTools(NEW, ["--bootstrap-server", servers], folder)
    tools("kafka-topics", "--create", "--topic", "later", *_WANTED)
    cluster.brokers[cluster.state(topic, 0)["leader"]].kill()
    wait_for("another leader", lambda: len(cluster.state(topic, 0)["isr"]) == 2)
