"""Partitions moved, taken back and led as preferred on real brokers, by unmodified clients."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from kafka import TopicPartition

from state.partitions.ballots import Finding
from streaming.demo.cluster import DemoCluster
from streaming.explain.story import Explainer, Explanation
from streaming.supervisor.processes import JOB
from streaming.zk.client import ZkSession
from streaming.zk.znodes import parse_topic, partition_state_path, topic_path
from streaming.zk.znodes.admin import reassignment_bytes
from tests.e2e.replica_folders import on_disk
from tests.e2e.waiting import wait_for
from tests.fixtures.znodes import preferred_election_bytes

ASK_MS = 120_000
PLAN, ELECTION = "/admin/reassign_partitions", "/admin/preferred_replica_election"
MOVING = "moving"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize(
        "demo", [{"options": ["--set=auto.leader.rebalance.enable=false"]}], indirect=True
    ),
]


def state(session: ZkSession, topic: str, partition: int) -> dict[str, Any]:
    znode = session.get(partition_state_path(topic, partition))
    return {} if znode is None else orjson.loads(znode.data)


def rests_on(session: ZkSession, replicas: list[int]) -> bool:
    """Partition 0 of the moving topic is on these replicas, all in sync, and nothing moves."""
    topic = parse_topic(session.get(topic_path(MOVING)).data)
    isr = state(session, MOVING, 0).get("isr", [])
    still = not topic.adding and not topic.removing
    return still and topic.replicas[0] == replicas and sorted(isr) == sorted(replicas)


def move(admin: Any, target: list[int] | None) -> None:
    subject = TopicPartition(MOVING, 0)
    assert admin.alter_partition_reassignments({subject: target}, timeout_ms=ASK_MS) == {
        subject: None
    }


def test_partitions_move_and_come_back(demo: DemoCluster, session: ZkSession, admin: Any) -> None:
    admin.create_topics({MOVING: {"assignments": {0: [1, 2]}}}, timeout_ms=ASK_MS)
    wait_for("the topic", lambda: rests_on(session, [1, 2]) and on_disk(demo, MOVING) == [1, 2])

    move(admin, [3])
    wait_for("the move", lambda: rests_on(session, [3]) and on_disk(demo, MOVING) == [3])
    assert state(session, MOVING, 0)["leader"] == 3
    wait_for("nothing that moves", lambda: admin.list_partition_reassignments() == {})

    session.create(PLAN, reassignment_bytes({(MOVING, 0): [2, 1], ("nobody", 0): [1]}))
    demo.supervisor.kill(JOB)
    wait_for("the plan", lambda: rests_on(session, [2, 1]) and on_disk(demo, MOVING) == [1, 2])
    wait_for("the end of the plan", lambda: session.get(PLAN) is None)

    demo.broker(3).kill()
    wait_for("the broker's end", lambda: 3 not in demo.look().brokers)
    session.create(PLAN, reassignment_bytes({(MOVING, 0): [3, 2]}))
    moving = wait_for("a move that waits", admin.list_partition_reassignments)
    described = moving[TopicPartition(MOVING, 0)]
    assert (described["replicas"], described["adding_replicas"]) == ([3, 2, 1], [3])
    move(admin, None)
    wait_for("the way back", lambda: rests_on(session, [2, 1]))
    wait_for("the end of the plan", lambda: session.get(PLAN) is None)
    demo.broker(3).start()
    move(admin, [3, 2])
    wait_for(
        "the broker's part", lambda: rests_on(session, [3, 2]) and on_disk(demo, MOVING) == [2, 3]
    )


def test_preferred_replicas_lead_again_when_asked(
    demo: DemoCluster, session: ZkSession, admin: Any
) -> None:
    admin.create_topics({MOVING: {"assignments": {0: [3, 1], 1: [3, 2]}}}, timeout_ms=ASK_MS)
    wait_for("the topic", lambda: state(session, MOVING, 1).get("leader") == 3)
    demo.broker(3).kill()
    wait_for("other leaders", lambda: _leaders(session) == [1, 2])
    demo.broker(3).start()
    wait_for("full ISRs", lambda: all(len(state(session, MOVING, p)["isr"]) == 2 for p in (0, 1)))
    death = wait_for("every broker's word", lambda: explained(demo, "offline_partition_elected"))
    assert dict(death.reconstruction.ballots[0].candidates) == {
        3: Finding.NOT_REGISTERED,
        1: Finding.ELECTED,
    }
    assert (death.change.row["leader_before"], death.change.row["partition_epoch"]) == (3, 1)
    assert death.recipients == (1, 2)

    admin.elect_leaders(0, {MOVING: [0]}, timeout_ms=ASK_MS)
    wait_for("one preferred leader", lambda: _leaders(session) == [3, 2])
    session.create(ELECTION, preferred_election_bytes([(MOVING, 1)]))
    wait_for("the other one", lambda: _leaders(session) == [3, 3])
    wait_for("the request's end", lambda: session.get(ELECTION) is None)

    admin.create_partitions({MOVING: 3}, timeout_ms=ASK_MS)
    wait_for("a new partition", lambda: len(state(session, MOVING, 2).get("isr", [])) == 2)


def explained(demo: DemoCluster, rule: str) -> Explanation | None:
    """The change of the first partition by a rule, once all who had to hear of it confirmed it."""
    with Explainer(demo.folders) as explainer:
        story = explainer.story(MOVING, 0, 99)
    found = [one for one in story if one.change.row is not None and one.change.row["rule"] == rule]
    confirmed = [one for one in found if set(one.recipients) == one.outcome.confirmed_ms.keys()]
    assert all(one.outcome.delivered_ms.keys() >= set(one.recipients) for one in confirmed)
    return confirmed[0] if confirmed else None


def _leaders(session: ZkSession) -> list[int]:
    return [state(session, MOVING, partition)["leader"] for partition in (0, 1)]
