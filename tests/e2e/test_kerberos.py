"""Three real brokers that know each other, this node and their clients by tickets of Kerberos, as
their ZooKeeper does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.znodes import topic_path
from tests.e2e.group_clients import TOPIC, JavaClient, Member, producing
from tests.e2e.real_cluster import RealCluster
from tests.e2e.sasl_cluster import sasl_cluster
from tests.e2e.securing import (
    brokers,
    coordinated_here,
    create,
    drive_from_the_start,
    leave_to_brokers,
    rights_follow,
)
from tests.e2e.shared import Shared
from tests.e2e.waiting import wait_for
from tests.fixtures.certificates import Authority
from tests.fixtures.jaas import jaas_file
from tests.fixtures.kafka_tools import NEW, KafkaTools
from tests.fixtures.key_distribution import SERVICE, Kdc
from tests.fixtures.secured_zookeeper import zookeeper_with_tickets

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]


_PRINCIPALS = {"alice": "alice", "bob": "bob/admin"}
"""Of users; a rule makes robert of bob."""


@dataclass(frozen=True)
class Ticketed:
    """A cluster, where tickets come from, and who signs certificates."""

    cluster: RealCluster
    kdc: Kdc
    authority: Authority

    def java(self, user: str = "alice") -> dict[str, str]:
        """How somebody connects with a client of Java's."""
        module = self.kdc.options(_PRINCIPALS[user])
        options = " ".join(f'{key}="{value}"' for key, value in module.items())
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trusted),
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": SERVICE,
            "sasl.jaas.config": f"com.sun.security.auth.module.Krb5LoginModule required {options};",
        }


def _cluster(folder: Path, kdc: Kdc, authority: Authority) -> AbstractContextManager[RealCluster]:
    zookeeper = zookeeper_with_tickets(folder / "zookeeper", kdc)
    module = {"Krb5LoginModule": kdc.options(f"{SERVICE}/localhost")}
    jaas = jaas_file(folder / "brokers.jaas", {"KafkaServer": module, "Client": module})
    shared = {
        "zookeeper.connect": zookeeper.start(),
        "zookeeper.set.acl": "true",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": SERVICE,
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1](bob)s/bob/robert/,DEFAULT",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        # Who comes to the other listener has no name, and is what starts and watches the cluster.
        "super.users": f"User:{SERVICE};User:alice;User:ANONYMOUS",
    }
    return sasl_cluster(
        folder,
        authority,
        jaas,
        shared,
        of_ours={"java.security.krb5.conf": kdc.krb5_conf},
        java=[f"-Djava.security.krb5.conf={kdc.krb5_conf}"],
        zookeeper=zookeeper,
    )


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, kdc: Kdc, authority: Authority
) -> Iterator[Shared[RealCluster]]:
    """Brokers and this node are one service, with each other and with ZooKeeper."""
    with Shared(lambda: _cluster(tmp_path_factory.mktemp("ticketed"), kdc, authority)) as clusters:
        yield clusters


@pytest.fixture
def ticketed(
    clusters: Shared[RealCluster], kdc: Kdc, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> Ticketed:
    cluster = clusters.get()
    # So clients of Java's find the centre.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.krb5.conf={kdc.krb5_conf}")
    return Ticketed(cluster, kdc, authority)


def test_brokers_are_driven_and_answered_by_tickets(ticketed: Ticketed, tmp_path: Path) -> None:
    cluster = ticketed.cluster
    drive_from_the_start(cluster, tmp_path, ticketed.java())
    assert cluster.status()["gateway"].get("closed_unauthenticated", 0) == 0


def test_a_member_with_a_ticket_is_coordinated_here(ticketed: Ticketed, tmp_path: Path) -> None:
    cluster = ticketed.cluster
    create(cluster, tmp_path, TOPIC, ticketed.java())
    group = "of-java"
    wait_for("this coordinator", lambda: coordinated_here(cluster, group))
    joined = cluster.status()["gateway"].get("requests_JoinGroup", 0)
    config = KafkaTools(NEW, [], tmp_path).properties("member", ticketed.java())
    client = JavaClient(brokers(cluster), group, tmp_path, "--consumer.config", str(config))
    member = Member(group, client)
    # Clients that are not Java's know nothing of tickets.
    with producing({}, [broker.bootstrap_server for broker in cluster.brokers.values()]):
        member.start()
        try:
            member.goes_on()
        finally:
            member.stop()
    assert member.error is None
    assert cluster.status()["gateway"]["requests_JoinGroup"] > joined


def test_a_ticket_says_whose_rights_count(ticketed: Ticketed, tmp_path: Path) -> None:
    rights_follow(ticketed.cluster, tmp_path, ticketed.java, "User:robert")


def test_znodes_are_for_the_service_which_goes_on_without_us(
    clusters: Shared[RealCluster], ticketed: Ticketed, tmp_path: Path
) -> None:
    cluster = ticketed.cluster
    create(cluster, tmp_path, "kept", ticketed.java())
    with pytest.raises(RequestFailed) as refused:
        cluster.session.set(topic_path("kept"), b"{}")  # as anybody
    assert refused.value.code == ZkErrorCode.NO_AUTH
    clusters.spoil()
    leave_to_brokers(cluster, "kept", tmp_path)
