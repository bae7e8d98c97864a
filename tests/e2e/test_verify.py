"""`helmstream verify` on real brokers: whoever controls them, and when something differs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import OURS
from streaming.internal_topics import GROUP_TOPIC
from streaming.sockets.status_socket import fetch_status
from streaming.zk.client import ZkSession
from streaming.zk.znodes import broker_path, partition_state_path
from tests.e2e.demo_cluster import start_again
from tests.e2e.group_stage import GROUP_PARTITIONS, TAKING_GROUPS_OVER
from tests.e2e.replica_folders import on_disk, topics_of
from tests.e2e.waiting import wait_for

ASK_MS = 120_000
START_S = 120.0
VERIFY_S = 120

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def verified(demo: DemoCluster, *options: str) -> tuple[int, list[Any], Any]:
    """Return the command's exit code, what differs, and the summary."""
    given = [f"--set={one}" for one in demo.embedded.settings()]
    command = [sys.executable, "-m", "streaming.cli", "verify", "--json", "--settle=1"]
    done = subprocess.run(
        [*command, *given, *options], capture_output=True, timeout=VERIFY_S, check=False
    )
    assert done.stdout, done.stderr.decode()
    *differences, last = map(orjson.loads, done.stdout.splitlines())
    return done.returncode, differences, last["summary"]


def agreed(demo: DemoCluster) -> bool:
    return verified(demo)[0] == 0


def matters(differences: list[Any]) -> set[tuple[int, str, str, int]]:
    return {(one["broker"], one["matter"], one["topic"], one["partition"]) for one in differences}


def commit_once(demo: DemoCluster, admin: Any) -> None:
    """Have the topic of groups made, and its partitions led by this node."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=demo.embedded.bootstrap_servers, group_id="verified"
    )
    consumer.subscribe(["spread"])

    def assigned() -> Any:
        consumer.poll(100)
        return consumer.assignment()

    wait_for("an assignment", assigned)
    consumer.commit()
    consumer.close()


def owned(demo: DemoCluster) -> bool:
    partitions = fetch_status(demo.folders.root, 60)["groups"]["partitions"]
    phases = [one["phase"] for one in partitions.values()]
    return phases == ["owned"] * GROUP_PARTITIONS


@pytest.mark.parametrize("demo", [TAKING_GROUPS_OVER], indirect=True)
def test_every_broker_has_what_zookeeper_has_whoever_controls(
    demo: DemoCluster, session: ZkSession, admin: Any
) -> None:
    wanted = {"spread": {"num_partitions": 9, "replication_factor": 2}}
    admin.create_topics(wanted, timeout_ms=ASK_MS)
    commit_once(demo, admin)
    wait_for("the group topic", lambda: owned(demo))

    wait_for("agreement", lambda: agreed(demo))
    told = [view.leaders[GROUP_TOPIC, 0] for view in demo.broker_views().values() if view]
    assert told == [OURS] * 3
    replicas = 9 * 2 + GROUP_PARTITIONS * 3
    counts = {one["broker"]: one for one in verified(demo)[2]["brokers"]}
    assert sum(one["replicas"] for one in counts.values()) == replicas
    assert {one["topics"] for one in counts.values()} == {2}
    assert sorted(counts) == [1, 2, 3, OURS]

    demo.stop_ours()
    wait_for("a broker's control", lambda: demo.look().controller_id in demo.embedded.brokers)
    wait_for("agreement", lambda: agreed(demo))
    assert sorted(one["broker"] for one in verified(demo)[2]["brokers"]) == [1, 2, 3]


def test_it_tells_what_a_broker_has_otherwise(
    demo: DemoCluster, session: ZkSession, admin: Any
) -> None:
    wanted = {name: {"assignments": {0: [1, 2, 3]}} for name in ("written", "moved")}
    admin.create_topics(wanted, timeout_ms=ASK_MS)
    wait_for("agreement", lambda: agreed(demo))

    path = partition_state_path("written", 0)
    before = session.get(path)
    assert before is not None
    state = orjson.loads(before.data)
    changed = {"leader_epoch": state["leader_epoch"] + 1, "isr": [1, 2]}
    session.set(path, orjson.dumps({**state, **changed}), before.version)
    code, differences, _ = verified(demo)
    assert code == 5
    of_each = {"leader_epoch", "isr", "replica"}
    assert matters(differences) == {
        (broker, matter, "written", 0) for broker in (1, 2, 3) for matter in of_each
    } | {(OURS, matter, "written", 0) for matter in ("leader_epoch", "isr")}
    values = {one["matter"]: (one["zookeeper"], one["broker_has"]) for one in differences}
    assert values == {
        "leader_epoch": (1, 0),
        "isr": ([1, 2], [1, 2, 3]),
        "replica": (1, "an older leader epoch"),
    }
    session.set(path, before.data, before.version + 1)
    assert agreed(demo)

    demo.broker(3).kill()
    wait_for("its session's end", lambda: session.get(broker_path(3)) is None)
    wait_for("agreement of the others", lambda: agreed(demo))
    admin.alter_partition_reassignments({TopicPartition("moved", 0): [1, 2]}, timeout_ms=ASK_MS)
    wait_for("the move's end", lambda: topics_of(session)["moved"].replicas == {0: [1, 2]})
    start_again(demo, session, 3, START_S)
    assert on_disk(demo, "moved") == [1, 2, 3]
    wait_for("its return", lambda: len(verified(demo)[1]) == 1)
    code, (stray,), _ = verified(demo)
    assert (code, stray["matter"], stray["broker"]) == (5, "stray_replica", 3)
    assert (stray["topic"], stray["partition"], stray["zookeeper"]) == ("moved", 0, None)
