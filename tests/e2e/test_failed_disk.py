"""One of a broker's two disks fails under our control: the partitions on it are led by others, also
for a controller that begins later, and the rest of the broker serves on.

Everything is real but Spark. A disk fails by being another file: what is open is written to, until
the broker keeps its high watermarks, every five seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.internal_topics import GROUP_TOPIC
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import start_again
from tests.e2e.group_clients import TOPIC
from tests.e2e.group_deaths import START_S
from tests.e2e.group_stage import TAKING_GROUPS_OVER, Stage, coordinators, taken_over
from tests.e2e.random_checks import wait_until_finished
from tests.e2e.replica_folders import replica_folders
from tests.e2e.waiting import wait_for

BROKER = 2
"""Whose disk fails."""

Partitions = set[tuple[str, int]]

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
    pytest.mark.parametrize("demo", [{**TAKING_GROUPS_OVER, "log_dirs": 2}], indirect=True),
]


def on_disks(demo: DemoCluster) -> dict[Path, Partitions]:
    """The partitions on each disk of the broker."""
    found: dict[Path, Partitions] = {disk: set() for disk in demo.broker(BROKER).log_dirs}
    for one in replica_folders(demo):
        if one.broker == BROKER:
            found[one.path.parent].add((one.topic, one.partition))
    return found


def without_broker(demo: DemoCluster, partitions: Collection[tuple[str, int]]) -> Partitions:
    """Those of them that the broker neither leads nor is in sync with."""
    now = demo.look().partitions
    seen = {at: one for at in partitions if (one := now[at]) is not None}
    return {at for at, one in seen.items() if BROKER not in (one.leader, *one.isr)}


def test_a_disk_fails(demo: DemoCluster, session: ZkSession, stage: Stage) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    wait_until_finished(demo, session)
    (failed, on_failed), (_, on_other) = on_disks(demo).items()
    assert {topic for topic, _ in on_failed} >= {TOPIC, GROUP_TOPIC}

    kept = failed.rename(failed.with_name("kept"))
    failed.write_text("no folder")
    wait_for("other leaders", lambda: without_broker(demo, on_failed) == on_failed)
    stage.check()
    assert not without_broker(demo, on_other), "the other disk serves on"
    assert demo.broker(BROKER).running

    for role in (FRONT, JOB):
        demo.supervisor.kill(role)
        stage.check()
        wait_for("our leadership", lambda: taken_over(demo), START_S)
        assert without_broker(demo, on_failed) == on_failed
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    assert without_broker(demo, on_failed) == on_failed

    demo.broker(BROKER).kill()
    failed.unlink()
    kept.rename(failed)
    start_again(demo, session, BROKER, START_S)
    wait_until_finished(demo, session)
    stage.check()
