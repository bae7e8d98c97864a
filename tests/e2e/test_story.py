"""The whole of helmstream against real brokers: the demo's steps, and more crashes, as assertions.

A step's own check is the assertion: it looks at ZooKeeper and the brokers, not at our status. While
the producer runs, a step also fails when a partition does not ack again.
"""

from __future__ import annotations

import signal

import pytest

from streaming.demo.checks import all_in_sync, batches_went_on, leaders_only_on
from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import (
    CRASHED,
    STORY,
    a_broker_controls,
    control_is_ours,
    crashed_returns,
    returned_is_in_sync,
)
from streaming.demo.story import Look, Step
from streaming.supervisor.processes import FRONT
from tests.e2e.telling import check_nothing_lost, signal_job, tell

pytestmark = [
    pytest.mark.timeout(1200),
    # kafka-python leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


LEASE_MS = 20_000
"""Short enough for a test that waits for its end."""

LONG_SESSION = "--set=zookeeper.session.timeout.ms=60000"
"""A killed front is back before its session is over."""


def test_the_demos_story(demo: DemoCluster) -> None:
    story = tell(demo, STORY)
    check_nothing_lost(demo)
    reports = {told.step.name: told.report for told in story}
    timed = [told for told in story if told.step.event is not None]
    assert all(told.report.timing is not None for told in timed), reports
    crash = reports[f"kill -9 broker {CRASHED}"]
    assert crash.example is not None
    assert "offline_partition_elected" in crash.example
    assert crash.timing is not None
    assert crash.timing.answered == {1, 2}


def stop_the_job_and_kill_a_broker(demo: DemoCluster) -> None:
    """The broker's death is what the stopped job should decide about and does not."""
    signal_job(demo, signal.SIGSTOP)
    demo.broker(CRASHED).kill()


def continue_the_job(demo: DemoCluster) -> None:
    signal_job(demo, signal.SIGCONT)


def kill_the_front(demo: DemoCluster) -> None:
    demo.supervisor.kill(FRONT)


def stolen_back(look: Look) -> str | None:
    """One epoch higher: no broker held the role in between."""
    missing = control_is_ours(look) or batches_went_on(look) or all_in_sync(look)
    if missing is None and look.now.controller_epoch != look.before.controller_epoch + 1:
        missing = (
            f"the epoch went from {look.before.controller_epoch} to {look.now.controller_epoch}"
        )
    return missing


MORE_CRASHES = (
    *STORY[:2],
    Step(
        "SIGSTOP the job, kill -9 a broker",
        "the lease runs out, a broker's built-in controller takes over and moves the leaders",
        stop_the_job_and_kill_a_broker,
        lambda look: a_broker_controls(look) or leaders_only_on(look, {1, 2, 3} - {CRASHED}),
        limit_s=60,
    ),
    Step(
        "SIGCONT the job",
        "it folds what it missed, and control comes back",
        continue_the_job,
        lambda look: control_is_ours(look) or batches_went_on(look),
        limit_s=60,
    ),
    Step(
        "the broker returns",
        "it is in every ISR again",
        crashed_returns,
        returned_is_in_sync,
        limit_s=60,
    ),
    Step(
        "kill -9 the front",
        "its successor steals the role from the dead session, with the next epoch",
        kill_the_front,
        stolen_back,
        limit_s=60,
    ),
)


@pytest.mark.parametrize(
    "demo", [{"options": [f"--set=controller.lease.ms={LEASE_MS}", LONG_SESSION]}], indirect=True
)
def test_a_stopped_job_and_a_killed_front(demo: DemoCluster) -> None:
    tell(demo, MORE_CRASHES)
    check_nothing_lost(demo)
