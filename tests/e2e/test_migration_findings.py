"""What `helmstream migration` finds stops a real migration, and once it is mended that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.embedded.broker import KafkaBroker
from streaming.migration.findings import Weight
from streaming.migration.run import Found, look
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    CLUSTER_ID_PATH,
    TopicZNode,
    config_bytes,
    entity_config_path,
    parse_cluster_id,
    partition_state_path,
    topic_bytes,
    topic_path,
)
from tests.e2e.kraft_metadata import SECRET, set_password
from tests.e2e.quorum import MIGRATED, Quorum
from tests.e2e.waiting import WAIT_S, wait_for

pytestmark = pytest.mark.timeout(600)

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
GONE = 9
QUOTA = entity_config_path("users", "alice")
WAITS = f"Still waiting for ZK brokers [{GONE}] found in metadata to register with KRaft"
NO_NUMBER = "Unexpected client quota configuration value"
NOT_DECODED = "Password could not be decoded"
REFUSED = "Broker does not have the current inter.broker.listener ELSEWHERE"
STOPS, TO_DO = Weight.STOPS, Weight.TO_DO


def found_at(zookeeper: str, *controllers: Path) -> Found:
    given = [f"zookeeper.connect={zookeeper}", "inter.broker.listener.name=INTERNAL"]
    return look(load_settings(overrides=given, environment={}), controllers)


def told(found: Found) -> list[tuple[Weight, str]]:
    assert not found.gaps
    return [(one.weight, one.where) for one in found.findings]


def test_what_is_found_stops_a_migration_until_it_is_mended(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    wait_for("an answer of the broker", lambda: not found_at(zookeeper).gaps)
    assert told(found_at(zookeeper)) == [(TO_DO, "broker 1")]
    zk_session.create(topic_path("t"), topic_bytes(TopicZNode({0: [1, GONE]}, ID)))
    wait_for("a leader", lambda: zk_session.get(partition_state_path("t", 0)) is not None)
    gone, quota = (STOPS, f"broker {GONE}"), (STOPS, QUOTA)
    assert told(found_at(zookeeper)) == [gone, (TO_DO, "broker 1")]

    cluster_id = zk_session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    quorum.begin(zookeeper, parse_cluster_id(cluster_id.data))
    assert broker.terminate()
    broker.change_config({"zookeeper.metadata.migration.enable": "true", **quorum.known_to_brokers})
    broker.start(WAIT_S)
    wait_for("the quorum to wait", lambda: quorum.logged(WAITS))
    zk_session.ensure_path(QUOTA)
    zk_session.set(QUOTA, config_bytes({"producer_byte_rate": "fast"}))
    assert told(found_at(zookeeper)) == [gone, quota]

    zk_session.set(topic_path("t"), topic_bytes(TopicZNode({0: [1]}, ID)))
    wait_for("the end of the quorum", lambda: not quorum.running)
    assert quorum.logged(NO_NUMBER) and not quorum.logged(MIGRATED)
    assert told(found_at(zookeeper)) == [quota]

    zk_session.set(QUOTA, config_bytes({"producer_byte_rate": "1024"}))
    quorum.launch()
    wait_for("the migration", lambda: quorum.logged(MIGRATED))
    after = found_at(zookeeper)
    assert after.begun and not told(after)


def test_a_controller_that_would_ask_at_another_listener(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    cluster_id = zk_session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    protocols = quorum.known_to_brokers["listener.security.protocol.map"]
    elsewhere = {
        "inter.broker.listener.name": "ELSEWHERE",
        "listener.security.protocol.map": f"{protocols},ELSEWHERE:PLAINTEXT",
    }
    quorum.begin(zookeeper, parse_cluster_id(cluster_id.data), elsewhere)
    assert broker.terminate()
    broker.change_config({"zookeeper.metadata.migration.enable": "true", **quorum.known_to_brokers})
    broker.start(WAIT_S)
    wait_for("the quorum to refuse the broker", lambda: quorum.logged(REFUSED))
    file = quorum.properties
    wait_for("an answer of the broker", lambda: not found_at(zookeeper, file).gaps)
    assert told(found_at(zookeeper, file)) == [(STOPS, str(file))]
    assert not told(found_at(zookeeper))

    file.write_text(file.read_text().replace("name=ELSEWHERE", "name=INTERNAL"))
    assert not told(found_at(zookeeper, file))
    assert quorum.terminate(WAIT_S)
    quorum.launch()
    wait_for("the migration", lambda: quorum.logged(MIGRATED))


def test_a_controller_with_another_secret_than_the_broker(
    zookeeper: str, zk_session: ZkSession, broker: KafkaBroker, quorum: Quorum
) -> None:
    cluster_id = zk_session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    quorum.begin(zookeeper, parse_cluster_id(cluster_id.data), {SECRET: "another"})
    assert broker.terminate()
    migrating = {"zookeeper.metadata.migration.enable": "true", **quorum.known_to_brokers}
    broker.change_config({SECRET: "secret"})
    broker.start(WAIT_S)
    set_password(broker, "a word")
    assert broker.terminate()
    broker.change_config(migrating)
    broker.start(WAIT_S)
    wait_for("the end of the quorum", lambda: not quorum.running)
    assert quorum.logged(NOT_DECODED) and not quorum.logged(MIGRATED)
    file = quorum.properties
    wait_for("an answer of the broker", lambda: not found_at(zookeeper, file).gaps)
    assert told(found_at(zookeeper, file)) == [(STOPS, str(file))]

    file.write_text(file.read_text().replace(f"{SECRET}=another", f"{SECRET}=secret"))
    assert not told(found_at(zookeeper, file))
    quorum.launch()
    wait_for("the migration", lambda: quorum.logged(MIGRATED))
