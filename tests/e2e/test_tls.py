"""Three real brokers that speak TLS among themselves and with ZooKeeper, all of which want to know
who connects to them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.znodes import partition_state_path, topic_path
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from tests.e2e.real_cluster import OURS, Kind, RealCluster, running
from tests.e2e.securing import (
    OFFSETS,
    SECURED,
    create,
    drive,
    gateway,
    leave_to_brokers,
    pem,
    read_in_turns,
)
from tests.e2e.shared import Shared
from tests.e2e.waiting import wait_for
from tests.fixtures.certificates import Authority
from tests.fixtures.secured_zookeeper import secured_zookeeper

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]


@dataclass(frozen=True)
class Secured:
    """A cluster and who signs in it."""

    cluster: RealCluster
    authority: Authority

    def client(self, name: str = "client") -> dict[str, Any]:
        """How a kafka-python client connects, with a certificate of its own; "": with none."""
        context = ssl.create_default_context(cafile=str(self.authority.trusted))
        if name:
            context.load_cert_chain(self.authority.keystore(name))
        return {"security_protocol": "SSL", "ssl_context": context}

    def java(self, name: str) -> dict[str, str]:
        """How a client of Java's connects, with a certificate."""
        return {"security.protocol": "SSL", **pem(self.authority, name)}


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
    assert plain.startswith("CLIENT://") and ours == f"{SECURED}://{gateway(cluster)}"
    create(cluster, tmp_path, "moved", secured.java("admin"))
    drive(cluster, "moved")


def test_groups_of_clients_in_tls_are_coordinated_here(secured: Secured, tmp_path: Path) -> None:
    create(secured.cluster, tmp_path, "read", secured.java("admin"))
    read_in_turns(secured.cluster, "read", secured.client())


def test_certificates_are_renewed_while_it_runs(secured: Secured, tmp_path: Path) -> None:
    """Also those that the job shows: brokers that start are connected to anew."""
    create(secured.cluster, tmp_path, "renewed", secured.java("admin"))

    def shown() -> str:
        host, port = gateway(secured.cluster).split(":")
        return ssl.get_server_certificate((host, int(port)))

    before = shown()
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    secured.authority.keystore("helmstream", ends=ends)
    wait_for("the renewed certificate", lambda: shown() != before)
    assert secured.cluster.status()["certificate_ends_ms"] == ends.timestamp() * 1000
    drive(secured.cluster, "renewed")
    assert not secured.cluster.status()["gateway"].get("outdated_tls")


def test_who_has_no_certificate_is_kept_out(secured: Secured) -> None:
    def refused() -> int:
        return int(secured.cluster.status()["gateway"].get("closed_handshake", 0))

    before = refused()
    with pytest.raises(KafkaTimeoutError, match="Unable to bootstrap"):
        KafkaProducer(
            bootstrap_servers=gateway(secured.cluster),
            bootstrap_timeout_ms=3_000,
            **secured.client(""),
        )
    assert refused() > before


def test_znodes_are_for_the_cluster_which_goes_on_without_us(
    clusters: Shared[RealCluster], secured: Secured, tmp_path: Path
) -> None:
    cluster = clusters.get()
    create(cluster, tmp_path, "kept", secured.java("admin"))
    for path in (topic_path("kept"), partition_state_path("kept", 0), CONTROLLER_EPOCH_PATH):
        with pytest.raises(RequestFailed) as refused:
            cluster.session.set(path, b"{}")  # as anybody
        assert refused.value.code == ZkErrorCode.NO_AUTH
    clusters.spoil()
    leave_to_brokers(cluster, "kept", tmp_path)
