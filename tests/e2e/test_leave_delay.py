"""Dynamic members that are restarted within group.leave.rebalance.delay.ms cost a rebalance each,
where they would cost two.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_cluster import demo_cluster
from tests.e2e.group_processes import Members, java_member, python_members
from tests.e2e.group_stage import TAKING_GROUPS_OVER, committed, taken_over
from tests.e2e.group_topics import Topics, consumed, shared_out, written
from tests.e2e.waiting import wait_for
from tests.fixtures.plain_job import without_spark

START_S = 240.0
TOPIC = "restarted"
DELAY_MS = 120_000
"""A restart takes less, on a busy machine too."""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def test_a_restart_costs_one_rebalance(tmp_path: Path) -> None:
    options = [*TAKING_GROUPS_OVER["options"], f"--set=group.leave.rebalance.delay.ms={DELAY_MS}"]
    with demo_cluster(tmp_path, **{**TAKING_GROUPS_OVER, "options": options}) as demo:
        without_spark(demo.supervisor)
        demo.embedded.start_brokers()
        servers = demo.embedded.bootstrap_servers
        committed(servers, "first")
        demo.start_ours()
        wait_for("our leadership", lambda: taken_over(demo), START_S)
        brokers = ",".join(servers)
        place: dict[str, Any] = {"group.id": TOPIC}
        rd = place | {"bootstrap.servers": brokers, "partition.assignment.strategy": "range"}
        start: dict[str, Callable[[], Members]] = {
            "librdkafka": lambda: python_members("librdkafka", TOPIC, 1, **rd),
            "kafka-python": lambda: python_members(
                "kafka-python", TOPIC, 1, **place | {"bootstrap.servers": servers}
            ),
            "java": lambda: java_member(brokers, TOPIC, TOPIC, tmp_path),
        }
        members: dict[str, Members] = {}
        try:
            _restart_each(Topics(servers, demo.folders), start, members)
        finally:
            for one in members.values():
                one.kill()


def _restart_each(
    topics: Topics, start: dict[str, Callable[[], Members]], members: dict[str, Members]
) -> None:
    topics.create(TOPIC, 6)
    partitions = [(TOPIC, number) for number in range(6)]
    members |= {kind: one() for kind, one in start.items()}
    wait_for("the group", lambda: shared_out(members.values(), partitions, 3), START_S)
    topics.write(partitions)
    topics.wait_committed(TOPIC, partitions)
    ended = []
    for kind, another in start.items():
        before = topics.generations(TOPIC)
        (has,) = members[kind].owned.values()
        members[kind].stop()
        ended.append(members[kind])
        others = [one for one in partitions if one not in has]
        topics.write(partitions)
        topics.wait_committed(TOPIC, others)
        assert topics.generations(TOPIC) == before, "the others go on as they were"
        members[kind] = another()
        wait_for(f"{kind}'s return", lambda: shared_out(members.values(), partitions, 3), START_S)
        topics.wait_committed(TOPIC, partitions)
        assert topics.generations(TOPIC) == before + 1
    records = written(topics, TOPIC)
    counted = consumed([*ended, *members.values()], records)
    assert counted == dict.fromkeys(records, 1), "each record once"
