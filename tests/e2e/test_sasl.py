"""Three real brokers that want names and passwords, in TLS, and a ZooKeeper that does too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.znodes import entity_config_path, partition_state_path, topic_path
from tests.e2e.named_cluster import ALICE, SCRAM, WONDER, Named, named_cluster
from tests.e2e.real_cluster import RealCluster
from tests.e2e.securing import (
    create,
    drive_from_the_start,
    gateway,
    leave_to_brokers,
    read_in_turns,
    read_with_librdkafka,
)
from tests.e2e.shared import Shared
from tests.fixtures.certificates import Authority
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[Shared[RealCluster]]:
    """Brokers and this node have one name, with each other and with ZooKeeper."""
    with Shared(lambda: named_cluster(tmp_path_factory.mktemp("sasl"), authority)) as clusters:
        yield clusters


@pytest.fixture
def named(clusters: Shared[RealCluster], authority: Authority) -> Named:
    return Named(clusters.get(), authority)


def test_brokers_are_driven_and_answered_under_names(named: Named, tmp_path: Path) -> None:
    cluster = named.cluster
    drive_from_the_start(cluster, tmp_path, named.java())


def test_groups_of_clients_with_names_are_coordinated_here(named: Named, tmp_path: Path) -> None:
    create(named.cluster, tmp_path, "read", named.java())
    read_in_turns(named.cluster, "read", named.python())


def test_librdkafka_reads_and_commits_under_its_name(named: Named, tmp_path: Path) -> None:
    create(named.cluster, tmp_path, "read-too", named.java())
    read_with_librdkafka(named.cluster, "read-too", named.librdkafka(ALICE, WONDER))


@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM])
def test_who_does_not_know_the_password_is_kept_out(named: Named, mechanism: str) -> None:
    def refused() -> int:
        return int(named.cluster.status()["gateway"].get("closed_unauthenticated", 0))

    before = refused()
    with pytest.raises(KafkaError):
        KafkaAdminClient(
            bootstrap_servers=gateway(named.cluster),
            bootstrap_timeout_ms=3_000,
            **named.python(mechanism, "guess"),
        )
    assert refused() > before


def test_a_password_is_good_as_soon_as_it_is_set_until_it_is_taken(
    named: Named, tmp_path: Path
) -> None:
    at_gateway = gateway(named.cluster)
    tools = KafkaTools(NEW, ["--bootstrap-server", at_gateway], tmp_path)
    as_alice = tools.properties("alice", named.java())
    as_bob = tools.properties("bob", named.java("bob", "build"))
    bob = ("kafka-configs", "--entity-type", "users", "--entity-name", "bob", "--alter")
    password = f"{SCRAM}=[iterations=8192,password=build]"
    create(named.cluster, tmp_path, "seen", named.java())
    tools(*bob, "--add-config", password, "--command-config", as_alice)
    assert "seen" in tools("kafka-topics", "--list", "--command-config", as_bob).split()
    tools(*bob, "--delete-config", SCRAM, "--command-config", as_alice)
    said = tools("kafka-topics", "--list", "--command-config", as_bob, fails=True)
    assert "invalid credentials" in said


def test_znodes_are_for_the_cluster_which_goes_on_without_us(
    clusters: Shared[RealCluster], named: Named, tmp_path: Path
) -> None:
    cluster = clusters.get()
    create(cluster, tmp_path, "kept", named.java())
    for path in (topic_path("kept"), partition_state_path("kept", 0)):
        with pytest.raises(RequestFailed) as refused:
            cluster.session.set(path, b"{}")  # as anybody
        assert refused.value.code == ZkErrorCode.NO_AUTH
    with pytest.raises(RequestFailed):
        cluster.session.get(entity_config_path("users", ALICE))
    clusters.spoil()
    leave_to_brokers(cluster, "kept", tmp_path)
