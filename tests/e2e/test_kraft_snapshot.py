"""A cluster goes on in KRaft mode, in one step, from the snapshot of `helmstream kraft-snapshot`:
nobody is asked anything but ZooKeeper, and brokers keep their disks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.structs import OffsetAndMetadata

from streaming.demo.cluster import TOPIC, DemoCluster
from streaming.demo.steps import STORY
from streaming.dual_writes.run import compare
from streaming.embedded.broker import KafkaBroker
from streaming.kraft_snapshot.run import Written, secrets_of, write_kraft_snapshot
from streaming.metadata_log.reading import MetadataLog
from streaming.metadata_log.records import RecordType
from streaming.process.wall_clock import wall_clock_ms
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CLUSTER_ID_PATH, parse_cluster_id
from tests.e2e.demo_cluster import brokers_of
from tests.e2e.kraft_metadata import (
    ASK_MS,
    BEFORE,
    IN_KRAFT_MODE,
    OF_THE_QUORUM,
    PASSWORD,
    SECRET,
    asking,
    fill,
    set_password,
)
from tests.e2e.quorum import Quorum
from tests.e2e.telling import check_nothing_lost, tell
from tests.e2e.waiting import WAIT_S
from tests.fixtures.kafka_tools import NEWEST

pytestmark = pytest.mark.timeout(600)

STOP_S = 60.0
GROUP = "readers"
COMMITTED = 7
ANYTHING = {
    "principal": None,
    "host": None,
    "operation": ACLOperation.ANY,
    "permission_type": ACLPermissionType.ANY,
}
GROUPS = ResourcePatternFilter(ResourceType.GROUP, None, ACLResourcePatternType.ANY)


def settings_of(zookeeper: str) -> Settings:
    return load_settings(overrides=[f"zookeeper.connect={zookeeper}"], environment={})


def go_on(quorum: Quorum, session: ZkSession, zookeeper: str) -> Written:
    """Start a controller with what ZooKeeper has, once it is compared with that."""
    cluster_id = session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    quorum.prepare(parse_cluster_id(cluster_id.data), OF_THE_QUORUM)
    settings = settings_of(zookeeper)
    folder = quorum.metadata_log.parent
    written = write_kraft_snapshot(settings, folder, wall_clock_ms())
    found = compare(settings, quorum.metadata_log, settle_s=0)
    assert (found.topics, found.differences, found.gaps) == (written.topics, [], [])
    quorum.launch()
    return written


def start_in_kraft(quorum: Quorum, *brokers: KafkaBroker) -> None:
    for broker in brokers:
        config = {**IN_KRAFT_MODE, **OF_THE_QUORUM, "node.id": str(broker.broker_id)}
        broker.change_version(quorum.version)
        broker.change_config({**quorum.known_to_brokers, **config})
        broker.launch()
    for broker in brokers:
        broker.wait_until_ready(WAIT_S)


def with_group(servers: list[str], work: Callable[[Any], Any]) -> Any:
    """Have a consumer of the group do something."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False
    )
    try:
        return work(consumer)
    finally:
        consumer.close()


@pytest.mark.usefixtures("plain_job")
@pytest.mark.parametrize(
    "demo", [brokers_of("3.9.2", "3.9"), brokers_of("2.8.2", "2.8", slow=True)], indirect=True
)
def test_records_and_offsets(demo: DemoCluster, session: ZkSession, tmp_path: Path) -> None:
    """From brokers that we control to Kafka 4.4."""
    place = TopicPartition(TOPIC, 0)
    tell(demo, STORY[:2])
    servers, brokers = demo.embedded.bootstrap_servers, demo.embedded.brokers.values()
    committed = {place: OffsetAndMetadata(COMMITTED, "", -1)}
    with_group(servers, lambda consumer: consumer.commit(committed))
    demo.stop_traffic()
    demo.stop_ours()
    for broker in brokers:
        assert broker.terminate(STOP_S)
    quorum = Quorum(tmp_path / "kraft", NEWEST, alone=True)
    try:
        written = go_on(quorum, session, demo.embedded.connect)
        assert not written.gaps
        start_in_kraft(quorum, *brokers)
        check_nothing_lost(demo)
        assert with_group(servers, lambda consumer: consumer.committed(place)) == COMMITTED
        with asking(next(iter(brokers))) as admin:
            admin.create_topics({"new": {"replication_factor": 3}}, timeout_ms=ASK_MS)
    finally:
        quorum.kill()


def test_passwords_that_a_broker_has_encoded(zookeeper: str, tmp_path: Path) -> None:
    """Each broker has a secret, and its file of properties names it."""
    settings, secret = settings_of(zookeeper), {SECRET: "secret"}
    with KafkaBroker(1, zookeeper, tmp_path / "broker", config=secret) as broker:
        set_password(broker, "a word")
        told = write_kraft_snapshot(settings, tmp_path / "without", wall_clock_ms())
    (gap,) = told.gaps
    assert gap.startswith(f"/config/brokers/1: {PASSWORD}: it is encoded with a secret")
    with_secret, secrets = tmp_path / "with", secrets_of([broker.data_dir / "server.properties"])
    told = write_kraft_snapshot(settings, with_secret, wall_clock_ms(), secrets)
    assert not told.gaps
    configs = [one for one in MetadataLog(with_secret).records() if one.kind is RecordType.CONFIG]
    assert [(one.body["name"], one.body["value"]) for one in configs] == [(PASSWORD, "a word")]


def test_all_else(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    """Configurations, quotas, users, access control lists, tokens and ids of producers."""
    fill(zk_session, broker)
    assert broker.terminate(STOP_S)
    written = go_on(quorum, zk_session, zookeeper)
    assert (written.topics, written.partitions, written.running_brokers) == (2, 6, [])
    assert written.others > len(BEFORE)
    start_in_kraft(quorum, broker)
    with asking(broker) as admin:
        (group_list,), _ = admin.describe_acls(ACLFilter(**ANYTHING, resource_pattern=GROUPS))
        users = admin.describe_user_scram_credentials()
        admin.create_topics({"new": {}}, timeout_ms=ASK_MS)
    assert (group_list.resource_pattern.resource_name, group_list.principal) == ("g-", "User:bob")
    assert list(users) == ["alice"]
    found = compare(settings_of(zookeeper), quorum.metadata_log, settle_s=0)
    assert [one.subject.name for one in found.differences] == ["new"]
