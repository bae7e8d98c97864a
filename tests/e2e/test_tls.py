"""Three real brokers that speak TLS among themselves and with ZooKeeper, all of which want to know
who connects to them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from streaming.embedded.ports import LOOPBACK
from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.znodes import CONTROLLER_PATH, partition_state_path, topic_path
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from tests.e2e.real_cluster import OURS, Kind, RealCluster, running
from tests.e2e.shared import Shared
from tests.e2e.test_hidden import in_sync
from tests.e2e.waiting import wait_for
from tests.fixtures.certificates import Authority
from tests.fixtures.kafka_tools import NEW, KafkaTools
from tests.fixtures.secured_zookeeper import secured_zookeeper

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

SECURED = "INTERNAL"
OFFSETS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
}


@dataclass(frozen=True)
class Secured:
    """A cluster and who signs in it."""

    cluster: RealCluster
    authority: Authority

    @property
    def gateway(self) -> str:
        """Where this node speaks TLS: brokers' second listener, so its second port."""
        return f"{LOOPBACK}:{self.cluster.port + 1}"

    @property
    def brokers(self) -> list[str]:
        """Where brokers speak TLS."""
        return [f"{LOOPBACK}:{one.internal_port}" for one in self.cluster.brokers.values()]

    def client(self, name: str = "client") -> dict[str, Any]:
        """How a kafka-python client connects, with a certificate of its own; "": with none."""
        context = ssl.create_default_context(cafile=str(self.authority.trusted))
        if name:
            context.load_cert_chain(self.authority.keystore(name))
        return {"security_protocol": "SSL", "ssl_context": context}


def pem(authority: Authority, name: str) -> dict[str, str]:
    """The properties with which Kafka speaks TLS."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.keystore(name)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[Shared[RealCluster]]:
    """Brokers and this node are one to ZooKeeper: they show it the same certificate."""
    with Shared(lambda: _secured(tmp_path_factory.mktemp("tls"), authority)) as clusters:
        yield clusters


def _secured(folder: Path, authority: Authority) -> AbstractContextManager[RealCluster]:
    zookeeper, connect = secured_zookeeper(folder / "zookeeper", authority)
    to_zookeeper = {
        "zookeeper.connect": connect,
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.set.acl": "true",
        **{f"zookeeper.{key}": value for key, value in pem(authority, "cluster").items()},
    }
    config = {
        "listener.security.protocol.map": f"CLIENT:PLAINTEXT,{SECURED}:SSL",
        "ssl.client.auth": "required",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        **OFFSETS,
        **to_zookeeper,
    }
    kinds = {id_: Kind(config=config | pem(authority, f"broker-{id_}")) for id_ in (1, 2, 3)}
    ours = {
        **{key: value for key, value in to_zookeeper.items() if not key.endswith(".type")},
        "gateway.listeners": "",  # those of the brokers, as they have them
        "ssl.keystore.location": authority.keystore("helmstream"),
        "ssl.truststore.location": authority.trusted,
        "groups.takeover.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
    }
    settings = [f"{key}={value}" for key, value in ours.items()]
    return running(folder, kinds, settings, spark=False, zookeeper=zookeeper)


@pytest.fixture
def secured(clusters: Shared[RealCluster], authority: Authority) -> Secured:
    return Secured(clusters.get(), authority)


def test_brokers_are_driven_and_answered_in_tls(secured: Secured, tmp_path: Path) -> None:
    cluster = secured.cluster
    (plain, ours) = cluster.json(f"/brokers/ids/{OURS}")["endpoints"]
    assert plain.startswith("CLIENT://") and ours == f"{SECURED}://{secured.gateway}"
    tools = KafkaTools(NEW, ["--bootstrap-server", secured.gateway], tmp_path)
    lines = {"security.protocol": "SSL", **pem(secured.authority, "admin")}
    how = tools.file("tls", "".join(f"{key}={value}\n" for key, value in lines.items()))
    wanted = ("--create", "--topic", "moved", "--replica-assignment", "1:2:3")
    tools("kafka-topics", *wanted, "--command-config", how)
    in_sync(cluster, "moved", 1, 3)

    before = len(cluster.broker_log(1))
    assert cluster.brokers[1].terminate(120)
    assert "Controlled shutdown request returned successfully" in cluster.broker_log(1)[before:]
    wait_for("the other leader", lambda: cluster.state("moved", 0)["leader"] == 2)
    cluster.brokers[1].start()
    in_sync(cluster, "moved", 1, 3)  # by AlterPartition

    cluster.brokers[2].kill()
    wait_for("a leader that lives", lambda: cluster.state("moved", 0)["leader"] in (1, 3))
    cluster.brokers[2].start()
    in_sync(cluster, "moved", 1, 3)


def test_groups_of_clients_in_tls_are_coordinated_here(secured: Secured, tmp_path: Path) -> None:
    cluster = secured.cluster
    tools = KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)
    tools("kafka-topics", "--create", "--topic", "read", "--replica-assignment", "1:2:3")
    in_sync(cluster, "read", 1, 3)
    producer = KafkaProducer(bootstrap_servers=secured.brokers, acks="all", **secured.client())
    for number in range(20):
        producer.send("read", b"%d" % number).get(120)
    producer.close()
    joined = cluster.status()["gateway"].get("requests_JoinGroup", 0)
    for first, last in ((0, 9), (10, 19)):
        consumer = KafkaConsumer(
            "read",
            bootstrap_servers=secured.brokers,
            group_id="in-tls",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=10,
            **secured.client(),
        )
        got = [int(next(consumer).value) for _ in range(10)]
        assert got == list(range(first, last + 1))
        consumer.commit()  # acknowledged once followers have fetched it from us, in TLS too
        consumer.close()
    assert cluster.status()["gateway"]["requests_JoinGroup"] > joined


def test_who_has_no_certificate_is_kept_out(secured: Secured) -> None:
    def refused() -> int:
        return int(secured.cluster.status()["gateway"].get("closed_handshake", 0))

    before = refused()
    with pytest.raises(KafkaTimeoutError, match="Unable to bootstrap"):
        KafkaProducer(
            bootstrap_servers=secured.gateway,
            bootstrap_timeout_ms=3_000,
            **secured.client(""),
        )
    assert refused() > before


def test_znodes_are_for_the_cluster_which_goes_on_without_us(
    clusters: Shared[RealCluster], tmp_path: Path
) -> None:
    cluster = clusters.get()
    at_gateway = KafkaTools(NEW, ["--bootstrap-server", cluster.gateway], tmp_path)
    at_gateway("kafka-topics", "--create", "--topic", "kept", "--replica-assignment", "1:2:3")
    in_sync(cluster, "kept", 1, 3)
    for path in (topic_path("kept"), partition_state_path("kept", 0), CONTROLLER_EPOCH_PATH):
        with pytest.raises(RequestFailed) as refused:
            cluster.session.set(path, b"{}")  # as anybody
        assert refused.value.code == ZkErrorCode.NO_AUTH

    clusters.spoil()
    cluster.stop_supervising()
    cluster.supervisor.stop()
    wait_for("a broker that controls", lambda: cluster.json(CONTROLLER_PATH).get("brokerid", 0) > 0)
    assert cluster.json(CONTROLLER_PATH)["brokerid"] != OURS
    servers = cluster.brokers[1].bootstrap_server
    at_broker = KafkaTools(NEW, ["--bootstrap-server", servers], tmp_path)
    at_broker("kafka-topics", "--create", "--topic", "later", "--replica-assignment", "1:2:3")
    cluster.brokers[cluster.state("kept", 0)["leader"]].kill()
    wait_for("another leader", lambda: len(cluster.state("kept", 0)["isr"]) == 2)
