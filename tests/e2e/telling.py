"""Steps as assertions, and what all servers logged last."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from streaming.demo.cluster import DemoCluster
from streaming.demo.story import Step, Told, perform
from streaming.supervisor.processes import JOB

_LOG_LINES = 40
_PATIENCE = 4
"""A test waits longer than somebody who watches the demo: its machine may be busy."""


def tell(demo: DemoCluster, steps: Sequence[Step]) -> list[Told]:
    """Perform all steps; fail at the first that is not seen."""
    story = []
    for step in steps:
        told = perform(step, demo, _PATIENCE)
        if told.missing is not None:
            pytest.fail(f"{step.name}: {told.missing}", pytrace=False)
        story.append(told)
    return story


def check_nothing_lost(demo: DemoCluster) -> None:
    demo.stop_traffic()
    verdict = demo.verdict()
    assert verdict.acked > 0
    assert not verdict.lost, f"LOST: {verdict}: {verdict.lost[:10]}"
    assert not verdict.duplicates, f"DUPLICATES: {verdict}"


def log_ends(demo: DemoCluster) -> str:
    """Return the ends of all processes' logs.

    They stand beside what failed and not in it: a word in a log would say whether to try again.
    """
    roles = [role.log_path for role in demo.supervisor.roles.values()]
    brokers = [broker.log_path for broker in demo.embedded.brokers.values()]
    paths = [*roles, *brokers, demo.embedded.zookeeper.log_path]
    return "\n".join(f"--- {path}\n{_end(path)}" for path in paths)


def _end(path: Path) -> str:
    if not path.exists():
        return "(no log)"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:])


def signal_job(demo: DemoCluster, number: signal.Signals) -> None:
    """Signal the driver, its JVM and its Python workers."""
    child = demo.supervisor.roles[JOB].child
    assert child is not None
    driver = psutil.Process(child.pid)
    for process in [driver, *driver.children(recursive=True)]:
        process.send_signal(number)
