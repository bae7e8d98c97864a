"""A cluster that we controlled migrates to KRaft as Kafka's manual says, and comes back to us.

Everything that the KRaft controller reads was written by us, and by the brokers under our control.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

from streaming.demo.cluster import BROKERS, PARTITIONS, TOPIC, DemoCluster
from streaming.demo.steps import OURS, STORY
from streaming.dual_writes.run import compare
from streaming.embedded.broker import KafkaBroker
from streaming.migration.findings import Weight
from streaming.migration.run import look
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import role_command
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    CLUSTER_ID_PATH,
    CONTROLLER_PATH,
    MIGRATION_PATH,
    TOPICS_PATH,
    TopicZNode,
    parse_cluster_id,
    parse_controller_id,
    parse_kraft_epoch,
    topic_path,
)
from tests.e2e.demo_cluster import controlled, start_again
from tests.e2e.quorum import KRAFT, LISTENERS, MIGRATED, Quorum
from tests.e2e.random_checks import wait_until_finished, wait_until_none
from tests.e2e.replica_folders import topics_of
from tests.e2e.telling import check_nothing_lost, tell
from tests.e2e.verifying import told_otherwise
from tests.e2e.waiting import WAIT_S, wait_for

WAITS_FOR_US = f"Still waiting for ZK brokers [{OURS}] to register"
ASK_MS = 120_000
ASK_S = 60
STOP_S = 60.0
TOLD_S = 60.0
REFUSED_S = 120
SETTLE_S = 2.0

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def ask(servers: list[str], work: Any) -> None:
    """Have an admin client at these servers do something."""
    admin: Any = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=ASK_MS)
    try:
        work(admin)
    finally:
        admin.close()


def use(demo: DemoCluster, session: ZkSession) -> None:
    """Have us control a cluster in which topics came, moved, grew and went."""
    tell(demo, STORY[:2])

    def work(admin: Any) -> None:
        new = {"assignments": {0: [1, 2]}, "configs": {"retention.ms": "86400000"}}
        admin.create_topics({"moved": new, "gone": new}, timeout_ms=ASK_MS)
        wait_until_finished(demo, session)
        admin.create_partitions({"moved": {"count": 2, "assignments": [[2, 3]]}})
        admin.alter_partition_reassignments({TopicPartition("moved", 0): [3, 1]})
        admin.delete_topics(["gone"], timeout_ms=ASK_MS)
        wait_for("the deletion", lambda: session.get(topic_path("gone")) is None)

    ask([demo.gateway], work)
    wait_until_finished(demo, session)


def all_in_sync(demo: DemoCluster) -> bool:
    """Whether ZooKeeper has all replicas of the topic with the records in sync."""
    seen = demo.look().of_topic(TOPIC).values()
    full = [one is not None and len(one.isr) == BROKERS for one in seen]
    return full == [True] * PARTITIONS


def stop(broker: KafkaBroker) -> None:
    """End a broker in order."""
    assert broker.terminate(STOP_S), f"{broker.name} did not end by itself"


def roll(
    demo: DemoCluster,
    session: ZkSession,
    config: Mapping[str, str],
    end: Callable[[KafkaBroker], object] = stop,
) -> None:
    """Restart broker by broker with another configuration, each once all are in sync."""
    for id_, broker in demo.embedded.brokers.items():
        end(broker)
        broker.change_config(config)
        start_again(demo, session, id_, WAIT_S)
        wait_for(f"all in sync behind broker {id_}", lambda: all_in_sync(demo))


def at(demo: DemoCluster) -> Settings:
    """Settings of commands that look at the cluster."""
    given = [f"zookeeper.connect={demo.embedded.connect}", "inter.broker.listener.name=INTERNAL"]
    return load_settings(overrides=given, environment={})


def nothing_grave_is_found(demo: DemoCluster) -> bool:
    """Whether `helmstream migration` finds but what is to be done anyway, this node among it."""
    found = look(at(demo))
    assert not found.gaps
    nodes = {f"broker {id_}" for id_ in (*demo.embedded.brokers, OURS)}
    return {one.where for one in found.of(Weight.TO_DO)} == nodes and len(nodes) == len(
        found.findings
    )


def migrate(
    demo: DemoCluster, session: ZkSession, quorum: Quorum, *, stopped_late: bool = False
) -> None:
    """Stop helmstream, and do what Kafka's manual says until the quorum controls the cluster.

    stopped_late: only once all else is done, and the quorum waits for us.
    """

    def stop_ours() -> Mapping[str, TopicZNode]:
        topics = topics_of(session)
        demo.stop_ours()
        return topics

    assert nothing_grave_is_found(demo)
    before = {} if stopped_late else stop_ours()
    cluster_id = session.get(CLUSTER_ID_PATH)
    assert cluster_id is not None
    quorum.begin(demo.embedded.connect, parse_cluster_id(cluster_id.data))
    migrating = {"zookeeper.metadata.migration.enable": "true", **quorum.known_to_brokers}
    roll(demo, session, migrating)
    if stopped_late:
        wait_for("the quorum to wait for us", lambda: quorum.logged(WAITS_FOR_US))
        assert controlled(demo) and fetch_status(demo.folders.root, ASK_S)["migration"]
        create(demo, session, "in-between")
        wait_until_finished(demo, session)
        before = stop_ours()
    wait_for("the migration", lambda: quorum.logged(MIGRATED))
    holder = session.get(CONTROLLER_PATH)
    assert holder is not None
    assert parse_controller_id(holder.data) == KRAFT
    assert parse_kraft_epoch(holder.data) is not None
    assert topics_of(session) == before


def create(demo: DemoCluster, session: ZkSession, topic: str) -> None:
    """Create a topic as clients of brokers do, whoever controls them."""
    new = {"num_partitions": 2, "replication_factor": 3}
    ask(demo.embedded.bootstrap_servers, lambda admin: admin.create_topics({topic: new}))
    wait_for(f"{topic} in ZooKeeper", lambda: topic in session.children(TOPICS_PATH))


def test_a_migration_that_is_rolled_back(
    demo: DemoCluster, session: ZkSession, quorum: Quorum
) -> None:
    use(demo, session)
    migrate(demo, session, quorum)
    create(demo, session, "from-kraft")
    assert not wait_until_none(lambda: told_otherwise(demo), TOLD_S)
    written = compare(at(demo), quorum.metadata_log, SETTLE_S)
    assert not written.gaps
    assert not written.differences
    assert written.topics == len(topics_of(session))

    refused = subprocess.run(
        role_command("run", demo.folders.root, demo.supervisor.config),
        capture_output=True,
        text=True,
        timeout=REFUSED_S,
        check=False,
    )
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert f"KRaft controller {KRAFT}" in refused.stderr
    holder = session.get(CONTROLLER_PATH)
    assert holder is not None and parse_controller_id(holder.data) == KRAFT

    quorum.kill()
    for path in (CONTROLLER_PATH, MIGRATION_PATH):
        session.delete(path)
    unset = dict.fromkeys(quorum.known_to_brokers, "")
    back = {
        "zookeeper.metadata.migration.enable": "false",
        "listener.security.protocol.map": LISTENERS,
    }
    # Asked to end, one that knows a quorum which is gone waits five minutes for it.
    roll(demo, session, unset | back, KafkaBroker.kill)
    demo.start_ours()
    wait_for("our control again", lambda: controlled(demo))
    wait_until_finished(demo, session)
    create(demo, session, "ours-again")
    wait_until_finished(demo, session)
    check_nothing_lost(demo)


@pytest.mark.slow
def test_a_migration_to_its_end(demo: DemoCluster, session: ZkSession, quorum: Quorum) -> None:
    use(demo, session)
    migrate(demo, session, quorum, stopped_late=True)
    for id_, broker in demo.embedded.brokers.items():
        stop(broker)
        in_kraft = {"process.roles": "broker", "node.id": str(id_)}
        off = {"zookeeper.metadata.migration.enable": "false", "zookeeper.connect": ""}
        broker.change_config(in_kraft | off)
        broker.start(WAIT_S)
        wait_for(f"all in sync behind broker {id_}", lambda: all_in_sync(demo))
    create(demo, session, "from-kraft")
    check_nothing_lost(demo)
