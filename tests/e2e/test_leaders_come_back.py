"""A broker that still catches up, which Kafka's own throttle delays, gets no leaders back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

WARM, COLD = "warm", "cold"
ASSIGNMENTS = {WARM: [[3, 1, 2]], COLD: [[1, 3, 2]]}
SETTINGS = (
    "auto.leader.rebalance.enable=true",
    "leader.imbalance.check.interval.seconds=1",
    "leader.rebalance.sync.wait.ms=600000",
)
RATE = "follower.replication.throttled.rate"
ASK_MS = 60_000
STOP_S = 60.0
RECORD = b"x" * 100_000
RECORDS = 50
LOOKS_S = 8.0
"""For so long, some looks at the balance, nothing goes back."""

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def create(cluster: RealCluster) -> None:
    servers = [one.bootstrap_server for one in cluster.brokers.values()]
    admin = KafkaAdminClient(bootstrap_servers=servers)
    wanted = {name: {"assignments": dict(enumerate(ASSIGNMENTS[name]))} for name in ASSIGNMENTS}
    admin.create_topics(wanted, timeout_ms=ASK_MS)
    admin.close()
    wait_for("all in sync", lambda: sizes(cluster) == [3, 3])


def sizes(cluster: RealCluster) -> list[int]:
    return [len(cluster.state(name, 0).get("isr", ())) for name in ASSIGNMENTS]


def leader(cluster: RealCluster) -> int:
    return int(cluster.state(WARM, 0)["leader"])


def write(cluster: RealCluster, topic: str) -> None:
    server = cluster.brokers[1].bootstrap_server
    producer = KafkaProducer(bootstrap_servers=[server], acks=1)
    for _ in range(RECORDS):
        producer.send(topic, RECORD)
    producer.flush(STOP_S)
    producer.close()


def test_leaders_come_back_when_all_replicas_are_in_sync(tmp_path: Path) -> None:
    with running(tmp_path, dict.fromkeys((1, 2, 3), Kind()), SETTINGS, spark=False) as cluster:
        create(cluster)
        tools = KafkaTools(
            NEW, ("--bootstrap-server", cluster.brokers[1].bootstrap_server), tmp_path / "tools"
        )

        def configure(kind: str, name: str, *change: str) -> None:
            tools("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", name, *change)

        configure("topics", COLD, "--add-config", "follower.replication.throttled.replicas=0:3")
        configure("brokers", "3", "--add-config", f"{RATE}=20000")
        broker = cluster.brokers[3]
        assert broker.terminate(STOP_S)
        wait_for("another leader", lambda: leader(cluster) == 1)
        write(cluster, COLD)
        broker.start()
        wait_for("one of its replicas in sync", lambda: sizes(cluster) == [3, 2])

        until_s = time.monotonic() + LOOKS_S
        while time.monotonic() < until_s:
            assert (leader(cluster), sizes(cluster)) == (1, [3, 2])
            time.sleep(0.5)

        configure("brokers", "3", "--delete-config", RATE)
        wait_for("both in sync", lambda: sizes(cluster) == [3, 3])
        wait_for("its leader", lambda: leader(cluster) == 3)
