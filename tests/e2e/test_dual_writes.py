"""What a real KRaft controller knows is what it wrote to ZooKeeper, as `helmstream verify
--metadata-log` finds, and what is changed behind its back is found.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from streaming.dual_writes.knowledge import Matter, differences
from streaming.dual_writes.quorum import MigrationState
from streaming.dual_writes.run import Found, compare, read_quorum
from streaming.embedded.broker import KafkaBroker
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    CLUSTER_ID_PATH,
    config_bytes,
    entity_config_path,
    parse_cluster_id,
    parse_config,
)
from tests.e2e.kraft_metadata import (
    ASK_MS,
    BEFORE,
    IN_KRAFT_MODE,
    OF_THE_QUORUM,
    asking,
    fill,
)
from tests.e2e.quorum import MIGRATED, Quorum
from tests.e2e.waiting import WAIT_S, wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = pytest.mark.timeout(600)

SETTLE_S = 1.0
WRITES = "KRAFT_CONTROLLER_TO_BROKER_COMM to DUAL_WRITE state"
SMALL_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1"}
OF_THE_BROKER = {
    "zookeeper.metadata.migration.enable": "true",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def found_in(quorum: Quorum, zookeeper: str) -> Found:
    settings = load_settings(overrides=[f"zookeeper.connect={zookeeper}"], environment={})
    return compare(settings, quorum.metadata_log, SETTLE_S)


def told(found: Found) -> list[tuple[Matter, str, str, object, object]]:
    """What differs."""
    return [
        (*one.subject, one.what, str(one.zookeeper), str(one.quorum)) for one in found.differences
    ]


def check_agreement(quorum: Quorum, zookeeper: str) -> Found:
    found = found_in(quorum, zookeeper)
    assert not found.gaps
    assert not told(found)
    return found


def migrate(
    session: ZkSession,
    broker: KafkaBroker,
    quorum: Quorum,
    zookeeper: str,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Migrate the cluster to a quorum that may have more configuration."""
    cluster_id = session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    quorum.begin(zookeeper, parse_cluster_id(cluster_id.data), {**OF_THE_QUORUM, **more})
    wait_for("its log", lambda: any(quorum.metadata_log.glob("*.log")))
    early = found_in(quorum, zookeeper)
    assert early.gaps and not early.differences
    assert broker.terminate()
    broker.change_config({**OF_THE_BROKER, **quorum.known_to_brokers})
    broker.start(WAIT_S)
    wait_for("the migration", lambda: quorum.logged(MIGRATED))


def acl(name: str, operation: str = "READ", kind: ResourceType = ResourceType.TOPIC) -> Any:
    pattern = ACLResourcePatternType.PREFIXED if name.endswith("-") else None
    return ACL(
        "User:carol",
        "*",
        ACLOperation[operation],
        ACLPermissionType.ALLOW,
        ResourcePattern(kind, name, pattern or ACLResourcePatternType.LITERAL),
    )


def use(broker: KafkaBroker, tools: KafkaTools) -> None:
    """Change something of what the quorum writes to ZooKeeper."""
    topic = ConfigResource(
        ConfigResourceType.TOPIC, "t", {"retention.ms": ("DELETE", None), "segment.ms": "60000"}
    )
    with asking(broker) as admin:
        admin.create_topics({"new": {"num_partitions": 2}}, timeout_ms=ASK_MS)
        admin.create_partitions({"t": 5})
        admin.delete_topics(["gone"], timeout_ms=ASK_MS)
        admin.alter_configs([topic])
        of_groups = [acl("g-", name, ResourceType.GROUP) for name in ("READ", "DESCRIBE")]
        admin.create_acls([acl("t", "WRITE"), acl("u"), *of_groups])
        admin.delete_acls(of_groups[1:])
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("bob@x", ScramMechanism.SCRAM_SHA_512, "secret"),
                UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256),
            ]
        )
    changed = ["--alter", "--add-config", "consumer_byte_rate=2048"]
    tools("kafka-configs", *changed, "--entity-type", "users", "--entity-name", "alice")


def begin_again(quorum: Quorum) -> None:
    """Have the next controller of the quorum write what it finds otherwise."""
    assert quorum.terminate(WAIT_S)
    quorum.launch()
    wait_for("the next controller", lambda: quorum.log_text().count(WRITES) == 2)


def check_that_snapshots_say_the_same(quorum: Quorum, folder: Path) -> None:
    """Whether the quorum's own snapshot, and what follows, is what the log from its start says."""
    wait_for("a snapshot", lambda: any(quorum.metadata_log.glob("*.checkpoint")))
    shutil.copytree(quorum.metadata_log, folder)
    with_snapshot = read_quorum(folder)
    for snapshot in folder.glob("*.checkpoint"):
        snapshot.unlink()
    whole = read_quorum(folder)
    assert with_snapshot.offset >= whole.offset > 0
    assert not list(differences(whole.known, with_snapshot.known))
    assert whole.migration is with_snapshot.migration is MigrationState.MIGRATION


def test_what_a_quorum_knows_and_wrote(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum, tmp_path: Path
) -> None:
    fill(zk_session, broker)
    migrate(zk_session, broker, quorum, zookeeper, SMALL_SNAPSHOTS)
    migrated = check_agreement(quorum, zookeeper)
    assert (migrated.topics, migrated.partitions) == (2, 6)
    assert migrated.others >= len(BEFORE) + 2

    tools = KafkaTools(NEW, ["--bootstrap-server", broker.bootstrap_server], tmp_path)
    use(broker, tools)
    used = check_agreement(quorum, zookeeper)
    assert (used.topics, used.partitions) == (2, 7)
    assert used.offset > migrated.offset
    check_that_snapshots_say_the_same(quorum, tmp_path / "copy")
    check_agreement(quorum, zookeeper)

    # Kafka 3.9.2 fails to write that a client has no quota any more, until a controller begins
    # (KRaftMigrationZkWriter.handleClientQuotasDelta, handleClientQuotasSnapshot).
    ended = ["--alter", "--delete-config", "controller_mutation_rate"]
    tools("kafka-configs", *ended, "--entity-type", "clients", "--entity-name", "app")
    unwritten = (Matter.CONFIG, "clients/app", "controller_mutation_rate", "3.5", "None")
    assert told(found_in(quorum, zookeeper)) == [unwritten]
    begin_again(quorum)
    check_agreement(quorum, zookeeper)

    path = entity_config_path("topics", "t")
    held = zk_session.get(path)
    assert held is not None
    zk_session.set(path, config_bytes({**parse_config(held.data), "retention.ms": "1"}))
    zk_session.set("/kafka-acl/Topic/u", b"{")
    found = found_in(quorum, zookeeper)
    assert told(found) == [(Matter.CONFIG, "topics/t", "retention.ms", "1", "None")]
    (gap,) = found.gaps
    assert "/kafka-acl/Topic/u" in gap


def test_configurations_that_a_quorum_brings_back(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    """A controller that loads its log takes up the configurations of topics that are deleted in
    what it loads (ConfigurationsDelta.replay), and writes them to ZooKeeper.
    """
    fill(zk_session, broker)
    migrate(zk_session, broker, quorum, zookeeper)
    with asking(broker) as admin:
        admin.delete_topics(["gone"], timeout_ms=ASK_MS)
    check_agreement(quorum, zookeeper)
    begin_again(quorum)
    brought_back = (Matter.CONFIG, "topics/gone", "retention.ms", "86400000", "None")
    assert told(found_in(quorum, zookeeper)) == [brought_back]


def test_configurations_at_which_a_quorum_ceases_to_write(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    """A controller that begins writes but topics where there are any of clients' metrics, which
    brokers in KRaft mode take (KRaftMigrationZkWriter.handleConfigsSnapshot).
    """

    def metrics(value: object) -> ConfigResource:
        return ConfigResource(ConfigResourceType.CLIENT_METRICS, "m", {"interval.ms": value})

    migrate(zk_session, broker, quorum, zookeeper)
    assert broker.terminate()
    broker.change_config(IN_KRAFT_MODE)
    broker.start(WAIT_S)
    unwritten = (Matter.CONFIG, "client-metrics/m", "interval.ms", "None", "1000")
    with asking(broker) as admin:
        admin.alter_configs([metrics("1000")], raise_on_unknown=False)
        assert told(found_in(quorum, zookeeper)) == [unwritten]
        assert quorum.terminate(WAIT_S)
        quorum.launch()
        wait_for("the fault", lambda: "Unknown config resource type" in quorum.log_text())
        admin.create_topics({"new": {"configs": {"retention.ms": "5"}}}, timeout_ms=ASK_MS)
        missing = (Matter.CONFIG, "topics/new", "retention.ms", "None", "5")
        found = told(found_in(quorum, zookeeper))
        assert [one for one in found if one[0] is Matter.CONFIG] == [unwritten, missing]
        admin.alter_configs([metrics(("DELETE", None))], raise_on_unknown=False)
    wait_for("it to write", lambda: quorum.log_text().count(WRITES) == 2)
    check_agreement(quorum, zookeeper)
