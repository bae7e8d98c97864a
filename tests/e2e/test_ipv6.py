"""ZooKeeper, brokers and this node under addresses of IPv6, written as numbers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from streaming.embedded.ports import free_ports
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from tests.e2e.real_cluster import OURS, Kind, RealCluster, started
from tests.e2e.securing import coordinated_here
from tests.e2e.waiting import wait_for
from tests.fixtures.plain_job import without_spark

TOPIC, GROUP = "six", "readers"
RECORDS = 20
DEAD = 1
CONSUMED_MS = 120_000
ANY = "[::]"
"""Of both kinds of addresses: the cluster's own looks go to 127.0.0.1."""


def has_ipv6() -> bool:
    """Whether this machine has a loopback address of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.skipif(not has_ipv6(), reason="this machine has no address of IPv6"),
]


class ZooKeeper6(EmbeddedZooKeeper):
    """One that is named by its address of IPv6."""

    @property
    def connect_string(self) -> str:
        return f"[::1]:{self.port}"


def broker(client: int, internal: int) -> Kind:
    ports = {"CLIENT": client, "INTERNAL": internal}
    return Kind(
        config={
            "listeners": ",".join(f"{name}://{ANY}:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(f"{n}://[::1]:{p}" for n, p in ports.items()),
            "offsets.topic.replication.factor": "2",
            "offsets.topic.num.partitions": "1",
        }
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    zookeeper = ZooKeeper6(tmp_path / "zookeeper", config={"clientPortAddress": "::"})
    ports = {id_: free_ports(2) for id_ in (1, 2, 3)}
    kinds = {id_: broker(*of) for id_, of in ports.items()}
    made = RealCluster(
        tmp_path, zookeeper, kinds, ["gateway.host=::1", "groups.takeover.enable=true"]
    )
    for id_, one in made.brokers.items():
        one.client_port, one.internal_port = ports[id_]
    without_spark(made.supervisor)
    with started(made) as cluster:
        yield cluster


def test_all_of_it_is_reached(cluster: RealCluster) -> None:
    servers = [f"[::1]:{one.client_port}" for one in cluster.brokers.values()]
    gateway: Any = KafkaAdminClient(bootstrap_servers=f"[::1]:{cluster.port}")
    gateway.create_topics({TOPIC: {"num_partitions": 3, "replication_factor": 3}})
    assert {one["host"] for one in gateway.describe_cluster()["brokers"]} == {"::1"}
    gateway.close()
    wait_for("the topic", lambda: all(cluster.state(TOPIC, one) for one in range(3)))
    wait_for("our coordination", lambda: coordinated_here(cluster, GROUP))
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for _ in range(RECORDS):
        producer.send(TOPIC, b"x")
    producer.flush()
    producer.close()
    consumer: Any = KafkaConsumer(
        TOPIC,
        bootstrap_servers=servers,
        group_id=GROUP,
        auto_offset_reset="earliest",
        consumer_timeout_ms=CONSUMED_MS,
    )
    for _ in range(RECORDS):
        next(consumer)
    consumer.commit()
    assert str(OURS) in str(consumer._coordinator.coordinator())
    consumer.close()
    cluster.brokers[DEAD].kill()
    wait_for(
        "other leaders",
        lambda: all(cluster.state(TOPIC, one)["leader"] not in {DEAD, -1} for one in range(3)),
    )
