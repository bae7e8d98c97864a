"""This node announced on the brokers' own listener only: what works, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.e2e.real_cluster import OURS, Kind, RealCluster, running
from tests.e2e.shared import Shared
from tests.e2e.test_tools import in_sync
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


# Announced under another host than the one that is bound, as beside brokers on other machines.
HIDDEN = ["gateway.hidden=true", "gateway.host=0.0.0.0", "gateway.advertised.host=localhost"]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[RealCluster]]:
    config = {"auto.create.topics.enable": "true", "default.replication.factor": "2"}
    kinds = {id_: Kind(config=config) for id_ in (1, 2)}

    def made() -> AbstractContextManager[RealCluster]:
        return running(tmp_path_factory.mktemp("hidden"), kinds, HIDDEN, spark=False)

    with Shared(made) as clusters:
        yield clusters


@pytest.fixture
def cluster(clusters: Shared[RealCluster]) -> RealCluster:
    return clusters.get()


@pytest.fixture
def at_broker(cluster: RealCluster, tmp_path: Path) -> KafkaTools:
    address = cluster.brokers[1].bootstrap_server
    return KafkaTools(NEW, ["--bootstrap-server", address], tmp_path)


@pytest.fixture
def at_gateway(cluster: RealCluster, tmp_path: Path) -> KafkaTools:
    return KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)


def test_clients_of_brokers_see_brokers_alone(cluster: RealCluster) -> None:
    admin: Any = KafkaAdminClient(bootstrap_servers=cluster.brokers[1].bootstrap_server)
    seen = wait_for(
        "both brokers", lambda: len(seen := admin.describe_cluster()["brokers"]) > 1 and seen
    )
    admin.close()
    assert sorted(broker["broker_id"] for broker in seen) == [1, 2]
    (end,) = cluster.json(f"/brokers/ids/{OURS}")["endpoints"]
    assert end.startswith("INTERNAL://localhost:")


def test_brokers_reach_us_and_their_clients_notice_nothing(
    cluster: RealCluster, at_gateway: KafkaTools
) -> None:
    at_gateway("kafka-topics", "--create", "--topic", "used", "--replica-assignment", "1:2")
    in_sync(cluster, "used", 1, 2)
    servers = [broker.bootstrap_server for broker in cluster.brokers.values()]
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
    producer.send("used", b"before").get(120)
    before = len(cluster.broker_log(1))
    assert cluster.brokers[1].terminate(120)
    assert "Controlled shutdown request returned successfully" in cluster.broker_log(1)[before:]
    wait_for("the other leader", lambda: cluster.state("used", 0)["leader"] == 2)
    producer.send("used", b"meanwhile").get(120)
    cluster.brokers[1].start()
    in_sync(cluster, "used", 1, 2)  # by AlterPartition
    producer.send("made-by-a-broker", b"first").get(120)
    producer.close()
    in_sync(cluster, "made-by-a-broker", 1, 2)
    assert OURS not in cluster.replicas("made-by-a-broker")["0"]


def test_tools_that_need_the_controller_work_at_the_gateway_only(
    at_broker: KafkaTools, at_gateway: KafkaTools
) -> None:
    patience = at_broker.file("patience", "default.api.timeout.ms=2000\nrequest.timeout.ms=1500\n")
    create = ("--create", "--topic", "wanted", "--replica-assignment", "2:1")
    describe = ("--describe", "--topic", "wanted")  # asks the controller what is moving
    for asked in (create, describe):
        refused = at_broker("kafka-topics", *asked, "--command-config", patience, fails=True)
        assert "TimeoutException" in refused
        at_gateway("kafka-topics", *asked)
    wait_for("the topic", lambda: "wanted" in at_broker("kafka-topics", "--list").split())
