"""An unclean election loses as little as can be: brokers are asked first whose log ends last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from streaming.demo.verdict import read_back
from streaming.explain.story import Explainer
from streaming.supervisor.processes import FRONT
from streaming.zk.znodes import broker_path
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.waiting import wait_for

TOPIC, GUARDED = "t", "guarded"
UNCLEAN = "unclean.leader.election.enable"
REPLICAS = [3, 2, 1]
UNCLEAN_ELECTION = 1
ASK_MS = 60_000
PATIENT = ("unclean.recovery.manager.enabled=true", "unclean.recovery.timeout.ms=3600000")
QUIET_S = 5.0
"""Longer than an election takes."""

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@contextmanager
def cluster_of(folder: Path, *settings: str) -> Iterator[RealCluster]:
    """Three brokers with a topic that may have unclean leaders, and one that may not."""
    with running(folder, dict.fromkeys((1, 2, 3), Kind()), settings, spark=False) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.gateway)
        wanted = {
            topic: {"assignments": {0: REPLICAS}, "configs": {UNCLEAN: unclean}}
            for topic, unclean in ((TOPIC, "true"), (GUARDED, "false"))
        }
        admin.create_topics(wanted, timeout_ms=ASK_MS)
        admin.close()
        for topic in wanted:
            wait_for("the topic", partial(is_isr, cluster, topic, [1, 2, 3]))
        yield cluster


def isr(cluster: RealCluster, topic: str) -> list[int]:
    return sorted(cluster.state(topic, 0).get("isr", []))


def is_isr(cluster: RealCluster, topic: str, wanted: list[int]) -> bool:
    return isr(cluster, topic) == wanted


def leader(cluster: RealCluster, topic: str) -> int:
    return int(cluster.state(topic, 0)["leader"])


def produce(cluster: RealCluster, broker: int, name: str, topics: tuple[str, ...]) -> list[bytes]:
    """Have ten records acknowledged by all that are in sync; return them."""
    client = KafkaProducer(bootstrap_servers=cluster.brokers[broker].bootstrap_server, acks="all")
    values = [b"%s %d" % (name.encode(), number) for number in range(10)]
    for topic in topics:
        for value in values:
            client.send(topic, value, partition=0).get(timeout=60)
    client.close(timeout=30)
    return values


def kill(cluster: RealCluster, broker: int) -> None:
    """Kill a broker, and wait until it is taken out of what can be in sync."""
    cluster.brokers[broker].kill()
    gone = broker_path(broker)
    wait_for("its session's end", lambda: cluster.session.get(gone) is None)


def stored(cluster: RealCluster, broker: int, topic: str) -> list[bytes]:
    """Return what a topic has."""
    found = read_back([cluster.brokers[broker].bootstrap_server], topic, [0])
    return [value for _, value in sorted(found.items())]


def of_three_lengths(cluster: RealCluster, *topics: str) -> dict[int, list[bytes]]:
    """Leave broker 3 with ten records, 2 with twenty, and 1 with thirty, none of them running;
    return what each has.
    """
    had: dict[int, list[bytes]] = {}
    values: list[bytes] = []
    for broker in REPLICAS:
        values = values + produce(cluster, broker, f"led by {broker}", topics)
        had[broker] = values
        kill(cluster, broker)
        left = range(1, max(broker, 2))
        for topic in topics:
            wait_for("the ISR", partial(is_isr, cluster, topic, [*left]))
    return had


def start(cluster: RealCluster, broker: int) -> None:
    cluster.brokers[broker].start()
    wait_for("the broker", lambda: broker in cluster.status()["brokers"])


def stays_without_leader(cluster: RealCluster, topic: str) -> None:
    until_s = time.monotonic() + QUIET_S
    while time.monotonic() < until_s:
        assert leader(cluster, topic) == -1
        time.sleep(0.2)


def test_who_was_in_sync_is_waited_for_unless_an_administrator_does_not(tmp_path: Path) -> None:
    with cluster_of(tmp_path, *PATIENT) as cluster:
        had = of_three_lengths(cluster, TOPIC, GUARDED)
        for broker in (3, 2):
            start(cluster, broker)
        stays_without_leader(cluster, TOPIC)
        assert cluster.status()["waiting_for_log_ends"] == 1, "the other may have no unclean leader"
        assert leader(cluster, GUARDED) == -1

        cluster.supervisor.kill(FRONT)
        wait_for("another front", lambda: cluster.status()["role"] == "active")
        wait_for("its questions", lambda: cluster.status()["waiting_for_log_ends"] == 1)
        assert leader(cluster, TOPIC) == -1

        admin: Any = KafkaAdminClient(bootstrap_servers=cluster.brokers[2].bootstrap_server)
        admin.elect_leaders(UNCLEAN_ELECTION, {GUARDED: [0]}, timeout_ms=ASK_MS)
        admin.close()
        wait_for("the election", lambda: leader(cluster, GUARDED) == 2)
        assert stored(cluster, 2, GUARDED) == had[2], "3, which is listed before, has less"

        assert leader(cluster, TOPIC) == -1
        start(cluster, 1)
        wait_for("its election", lambda: leader(cluster, TOPIC) == 1)
        assert stored(cluster, 1, TOPIC) == had[1]
        for topic in (TOPIC, GUARDED):
            wait_for("the others", partial(is_isr, cluster, topic, [1, 2, 3]))
        wait_for("nobody to wait", lambda: cluster.status()["waiting_for_log_ends"] == 0)


def test_a_log_that_ends_in_a_later_epoch_goes_before_a_longer_one(tmp_path: Path) -> None:
    settings = (PATIENT[0], "unclean.recovery.timeout.ms=15000")
    with cluster_of(tmp_path, *settings) as cluster:
        before = produce(cluster, 3, "all have it", (TOPIC,))
        for follower in (1, 2):
            cluster.brokers[follower].pause()
        alone: Any = KafkaProducer(
            bootstrap_servers=cluster.brokers[3].bootstrap_server, acks=1, linger_ms=0
        )
        for number in range(30):
            alone.send(TOPIC, b"only 3 has it %d" % number, partition=0).get(timeout=30)
        cluster.brokers[3].kill()
        alone.close(timeout=0)
        for follower in (1, 2):
            cluster.brokers[follower].resume()
        wait_for("another leader", lambda: leader(cluster, TOPIC) in (1, 2))
        wait_for("its ISR", lambda: isr(cluster, TOPIC) == [1, 2])
        kept = stored(cluster, 1, TOPIC)
        assert len(before) <= len(kept) < len(before) + 20, "what followers had asked for they got"
        acked = produce(cluster, 1, "acked by both", (TOPIC,))
        kill(cluster, 1)
        wait_for("broker 2 alone", lambda: isr(cluster, TOPIC) == [2])
        kill(cluster, 2)
        start(cluster, 3)
        start(cluster, 1)
        wait_for("the election", lambda: leader(cluster, TOPIC) == 1)
        assert stored(cluster, 1, TOPIC) == [*kept, *acked], "3 had more, that it alone acked"
        wait_for("broker 3 in sync", lambda: isr(cluster, TOPIC) == [1, 3])
        with Explainer(cluster.folders) as explainer:
            changes = explainer.story(TOPIC, 0, 20)
        ballots = [
            one
            for change in changes
            if change.reconstruction is not None
            for one in change.reconstruction.ballots
        ]
        (elected,) = [one for one in ballots if (one.isr, one.leader) == ((2,), 1)]
        assert dict(elected.candidates)[3] == "its log ends earlier, or it was not known where"
