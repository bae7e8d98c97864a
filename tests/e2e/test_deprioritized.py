"""A broker is relieved of its leaders with Kafka's own tools while records flow, is started again,
and gets them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from state.partitions.ballots import Finding
from streaming.explain.story import Explainer
from tests.e2e.random_traffic import Traffic
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

TOPIC = "t"
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]] * 3
IN_STEPS = (
    "auto.leader.rebalance.enable=true",
    "leader.rebalance.partitions.max=1",
    "leader.rebalance.step.interval.ms=100",
)
ASK_MS = 60_000
STOP_S = 60.0
LIST = "leader.deprioritized.list"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Relieved:
    """A cluster with a topic that is written and read, and Kafka's tools."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster = cluster
        self.servers = [one.bootstrap_server for one in cluster.brokers.values()]
        place = ("--bootstrap-server", self.servers[1])
        self.tools = KafkaTools(NEW, place, folder / "tools")
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        wanted = {TOPIC: {"assignments": dict(enumerate(REPLICAS))}}
        admin.create_topics(wanted, timeout_ms=ASK_MS)
        admin.close()

    def configure(self, *change: str) -> None:
        self.tools(
            "kafka-configs", "--alter", "--entity-type", "brokers", "--entity-default", *change
        )

    def leaders(self) -> list[int]:
        states = (self.cluster.state(TOPIC, number) for number in range(len(REPLICAS)))
        return [int(state.get("leader", -1)) for state in states]

    def wait_for_leaders(self, without: int | None) -> None:
        wanted = [next(one for one in listed if one != without) for listed in REPLICAS]
        wait_for(f"leaders without {without}", lambda: self.leaders() == wanted)

    def in_sync(self) -> bool:
        states = (self.cluster.state(TOPIC, number) for number in range(len(REPLICAS)))
        return all(len(state["isr"]) == 3 for state in states)

    def led_by_deprioritized(self) -> int:
        return int(self.cluster.status()["led_by_deprioritized"])


@contextmanager
def relieved(folder: Path, *settings: str) -> Iterator[Relieved]:
    brokers = dict.fromkeys((1, 2, 3), Kind())
    with running(folder, brokers, settings, spark=False) as cluster:
        made = Relieved(cluster, folder)
        made.wait_for_leaders(None)
        yield made


def test_a_broker_is_relieved_step_by_step_and_started_again(tmp_path: Path) -> None:
    with relieved(tmp_path, *IN_STEPS) as it:
        traffic = Traffic(it.servers, TOPIC, len(REPLICAS))
        try:
            it.configure("--add-config", f"{LIST}=[1]")
            it.wait_for_leaders(1)
            wait_for("the status", lambda: it.led_by_deprioritized() == 0)
            epochs = [it.cluster.state(TOPIC, number)["leader_epoch"] for number in range(3)]

            broker = it.cluster.brokers[1]
            assert broker.terminate(STOP_S)
            broker.start()
            wait_for("broker 1 in sync", it.in_sync)
            assert 1 not in it.leaders()
            after = [it.cluster.state(TOPIC, number)["leader_epoch"] for number in range(3)]
            assert [one - before for one, before in zip(after, epochs, strict=True)] == [1, 1, 1], (
                "nobody else leads: only the ISRs changed, once each by the shutdown"
            )

            it.configure("--delete-config", LIST)
            it.wait_for_leaders(None)
        finally:
            traffic.stop()
        verdict, consumed, misread = traffic.verdict()
        assert verdict.acked > 0 and consumed > 0
        assert (verdict.lost, verdict.duplicates, misread) == ([], 0, 0), str(verdict)
        with Explainer(it.cluster.folders) as explainer:
            told = explainer.story(TOPIC, 0, 20)
        ballots = [one for change in told if (why := change.reconstruction) for one in why.ballots]
        left = next(one for one in ballots if (one.partition, one.leader) == (0, 2))
        assert dict(left.candidates)[1] == Finding.DEPRIORITIZED


def test_an_administrator_moves_them_together_and_what_is_broken_changes_nothing(
    tmp_path: Path,
) -> None:
    with relieved(tmp_path) as it:
        it.configure("--add-config", f"{LIST}=[1,x]")
        wait_for(
            "its refusal", lambda: it.cluster.status()["counters"].get("broken_configs", 0) >= 1
        )
        it.configure("--add-config", f"{LIST}=[1,3]")
        wait_for("the list", lambda: it.led_by_deprioritized() > 0)
        elect = ("--election-type", "preferred", "--all-topic-partitions")
        it.tools("kafka-leader-election", *elect)
        assert set(it.leaders()) == {2}
        it.configure("--add-config", f"{LIST}=[2]")
        wait_for("the list", lambda: it.led_by_deprioritized() == len(REPLICAS))
        it.tools("kafka-leader-election", *elect)
        it.wait_for_leaders(2)
