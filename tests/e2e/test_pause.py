"""A pause on real brokers: one dies and nothing is written, until the pause ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from state.blocks import decode_block
from state.decisions import Action, DecisionKind
from streaming.cli import main
from streaming.demo.cluster import DemoCluster, TopicNotCreated
from streaming.demo.steps import CRASHED, OURS, start_everything
from streaming.errors import HelmstreamError
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.status_socket import fetch_status
from streaming.supervisor.processes import FRONT, JOB
from tests.e2e.test_deletion import in_sync, without_the_crashed
from tests.e2e.waiting import wait_for

PARTITIONS = 4
STAYS_S = 4.0

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def order(demo: DemoCluster, *words: str) -> None:
    """Run a command of ours; it must succeed."""
    with pytest.raises(SystemExit) as left:
        main([*words, "--data-dir", str(demo.folders.root), "--timeout", "60"])
    assert left.value.code in (0, None)


def status(demo: DemoCluster) -> dict[str, Any]:
    try:
        return fetch_status(demo.folders.root, 10)
    except HelmstreamError:
        return {}


def stays(what: str, true: Callable[[], bool]) -> None:
    until = time.monotonic() + STAYS_S
    while time.monotonic() < until:
        assert true(), f"not true any more: {what}"
        time.sleep(0.2)


def changed_partitions(folders: DataDir) -> int:
    """How many partitions were decided about, apart from telling brokers what was read."""
    with EmbeddedLogReader(folders.decisions) as reader:
        records = reader.read(reader.start_offset(), reader.end_offset())
        changes = [one.payload for one in records if one.kind == DecisionKind.CHANGE_PARTITIONS]
    actions = [decode_block(payload)[0]["actions"] for payload in changes]
    return sum(int((column != Action.UPDATE_METADATA).sum()) for column in actions)


def test_nothing_is_written_while_paused_and_all_of_it_after(demo: DemoCluster) -> None:
    start_everything(demo)
    wait_for("our control", lambda: demo.look().controller_id == OURS)
    demo.create_topic("t", PARTITIONS)
    wait_for("full ISRs", lambda: in_sync(demo))
    assert status(demo)["paused"] is False

    order(demo, "pause", "--reason", "a look around")
    assert status(demo)["paused"] is True
    decided = changed_partitions(demo.folders)
    for role in (JOB, FRONT):
        demo.supervisor.kill(role)
    wait_for("another job", lambda: status(demo).get("job", {}).get("pid"))
    wait_for("the role again", lambda: status(demo).get("role") == "active")
    wait_for("the pause again", lambda: status(demo)["paused"])
    assert demo.look().controller_id == OURS
    before = demo.look().partitions

    demo.broker(CRASHED).kill()
    wait_for("the broker's end", lambda: CRASHED not in demo.look().brokers)
    stays("the states are as they were", lambda: demo.look().partitions == before)
    assert any(one.leader == CRASHED for one in before.values() if one is not None)
    with pytest.raises(TopicNotCreated, match="PolicyViolation"):
        demo.create_topic("u", 1)
    assert changed_partitions(demo.folders) == decided

    order(demo, "resume")
    wait_for("other leaders", lambda: without_the_crashed(demo))
    leaders = {one.leader for one in demo.look().seen() if one is not None}
    assert leaders <= {1, 2, 3} - {CRASHED}
    assert status(demo)["paused"] is False
    demo.create_topic("u", 1)
    demo.broker(CRASHED).start()
    wait_for("full ISRs", lambda: in_sync(demo))
