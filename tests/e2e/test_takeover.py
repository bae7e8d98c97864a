"""A broker's own controller takes over, changes everything, and leaves work behind; then we return.

The broker that controls is stopped while the work is left, so that only we can do it.
"""

from __future__ import annotations

import signal
from typing import Any

import orjson
import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError

from streaming.demo.cluster import DemoCluster
from streaming.demo.metadata import ask_metadata
from streaming.demo.steps import OURS
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    TopicZNode,
    parse_topic,
    partition_state_path,
    topic_deletion_path,
    topic_path,
)
from streaming.zk.znodes.admin import reassignment_bytes
from tests.e2e.demo_cluster import take_control
from tests.e2e.random_checks import unfinished, wait_until_none
from tests.e2e.random_stage import ELECTION, PLAN
from tests.e2e.telling import signal_job
from tests.e2e.waiting import WAIT_S, wait_for
from tests.fixtures import waiting
from tests.fixtures.znodes import isr_change_bytes, log_dir_event_bytes, preferred_election_bytes
from tests.integration.front.harness import put_config

ASK_MS = 120_000
LEASE_MS = 20_000
SESSION_MS = 30_000
QUIET_S = 240.0
DEAD = 3

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]

ASSIGNMENTS = {
    "deleted": {0: [1, 2]},
    "pending": {0: [1, 2, 3]},
    "grown": {0: [1, 2]},
    "moved": {0: [1, 2]},
    "asked": {0: [2, 1]},
    "elected": {0: [1, 2], 1: [2, 1]},
    "shrunk": {0: [3, 1, 2]},
}


def asked(servers: list[str], call: str, *arguments: Any) -> None:
    """Call an unmodified admin client."""
    admin: Any = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=ASK_MS)
    try:
        getattr(admin, call)(*arguments, timeout_ms=ASK_MS)
    finally:
        admin.close()


def wait_until_gone(broker_id: int, servers: list[str]) -> None:
    """Wait until no server tells clients of a broker that ended: they would connect to it."""

    def named(server: str) -> set[int]:
        admin: Any = KafkaAdminClient(bootstrap_servers=[server], request_timeout_ms=ASK_MS)
        try:
            return {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
        finally:
            admin.close()

    waiting.wait_for(
        f"metadata without broker {broker_id}",
        lambda: all(broker_id not in named(server) for server in servers),
        WAIT_S,
        poll_s=0.2,
        again=(KafkaConnectionError,),
    )


def topic(session: ZkSession, name: str) -> TopicZNode | None:
    znode = session.get(topic_path(name))
    return None if znode is None else parse_topic(znode.data)


def state(session: ZkSession, name: str, partition: int = 0) -> dict[str, Any]:
    znode = session.get(partition_state_path(name, partition))
    return {"leader": None, "isr": []} if znode is None else orjson.loads(znode.data)


def controlling(demo: DemoCluster) -> int:
    """Return which living broker has the role; wait until it has, and all that live say so."""
    living = {id_: one for id_, one in demo.embedded.brokers.items() if one.pid is not None}

    def agreed() -> int | None:
        named = {ask_metadata(broker.client_port).controller_id for broker in living.values()}
        holder = demo.look().controller_id
        return holder if holder in living and named == {holder} else None

    return wait_for("a broker in control", agreed)


def change_everything(demo: DemoCluster, session: ZkSession) -> None:
    """Let the other controller carry out some things, and begin others that wait for a broker."""
    brokers = demo.embedded.bootstrap_servers
    asked(brokers, "create_topics", {"made": {"assignments": {0: [2, 1], 1: [1, 3]}}})
    asked(brokers, "create_partitions", {"grown": 3})
    asked(brokers, "delete_topics", ["deleted"])
    wait_for("the new topic", lambda: state(session, "made", 1)["leader"] is not None)
    wait_for("the growth", lambda: state(session, "grown", 2)["leader"] is not None)
    wait_for("the deletion", lambda: topic(session, "deleted") is None)
    assert demo.broker(DEAD).terminate(120)
    wait_for("a smaller ISR", lambda: DEAD not in state(session, "shrunk")["isr"])
    wait_until_gone(DEAD, brokers[:2])
    asked(brokers[:2], "delete_topics", ["pending"])
    session.create(PLAN, reassignment_bytes({("moved", 0): [DEAD, 1], ("elected", 0): [2, 1]}))
    wait_for("a move that waits", lambda: topic(session, "moved").adding == {0: [DEAD]})
    wait_for("other preferences", lambda: topic(session, "elected").replicas[0] == [2, 1])


def leave_work(session: ZkSession) -> None:
    """Ask for more while nobody controls."""
    session.create(ELECTION, preferred_election_bytes([("elected", 0)]))
    session.create_sequential(f"{ISR_CHANGE_PATH}/isr_change_", isr_change_bytes([("grown", 0)]))
    session.create_sequential(f"{LOG_DIR_EVENT_PATH}/log_dir_event_", log_dir_event_bytes(1))
    session.create(topic_deletion_path("asked"), b"")


@pytest.mark.parametrize(
    "demo",
    [
        {
            "options": [f"--set=controller.lease.ms={LEASE_MS}"],
            "broker_config": {
                "zookeeper.session.timeout.ms": str(SESSION_MS),
                "auto.leader.rebalance.enable": "false",
            },
        }
    ],
    indirect=True,
)
def test_what_another_controller_did_and_left_is_found(
    demo: DemoCluster, session: ZkSession
) -> None:
    take_control(demo)
    wanted = {name: {"assignments": replicas} for name, replicas in ASSIGNMENTS.items()}
    asked([demo.gateway], "create_topics", wanted)
    assert wait_until_none(lambda: unfinished(demo, session), QUIET_S) == []

    signal_job(demo, signal.SIGSTOP)
    # An event that waits until the lease is over.
    put_config(session, "topics", "elected", {"unclean.leader.election.enable": "false"})
    controlling(demo)
    change_everything(demo, session)
    controller = demo.broker(controlling(demo))
    controller.pause()
    try:
        leave_work(session)
        demo.broker(DEAD).start()
        assert topic(session, "pending") is not None
        signal_job(demo, signal.SIGCONT)
        wait_for("our control", lambda: demo.look().controller_id == OURS)
        wait_for("the request to elect", lambda: session.get(ELECTION) is None)
        wait_for("the election", lambda: state(session, "elected")["leader"] == 2)
    finally:
        controller.resume()
    assert wait_until_none(lambda: unfinished(demo, session), QUIET_S) == []
    assert {name for name, _ in demo.look().partitions} == {
        "grown", "moved", "elected", "shrunk", "made",
    }  # fmt: skip
    assert sorted(topic(session, "moved").replicas[0]) == [1, DEAD]
    assert sorted(state(session, "shrunk")["isr"]) == [1, 2, 3]
    for path in (ISR_CHANGE_PATH, LOG_DIR_EVENT_PATH):
        wait_for(f"an empty {path}", lambda at=path: session.children(at) == [])
