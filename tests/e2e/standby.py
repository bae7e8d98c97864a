"""A second helmstream on a cluster's data folder, which waits for its turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from streaming.embedded.process import ChildProcess
from streaming.supervisor.processes import JOB, STANDBY
from tests.e2e.real_cluster import RealCluster
from tests.e2e.waiting import wait_for


@contextmanager
def standing_by(cluster: RealCluster) -> Iterator[ChildProcess]:
    """`helmstream run --standby`, as a user starts it, once its job is warm and follows."""
    options = cluster.supervisor.config
    command = [sys.executable, "-m", "streaming.cli", "run", STANDBY]
    folder = cluster.folders.root
    process = ChildProcess.start(
        "standby",
        [*command, f"--data-dir={folder}", *options],
        log_path=folder / "log" / "standby.log",
    )
    job_log = folder / "log" / f"{JOB}.standby.log"
    try:
        wait_for("a standby that follows", lambda: "machines, as of event" in _said(job_log))
        yield process
    finally:
        process.terminate(60)


def job_of(process: ChildProcess, cluster: RealCluster) -> int | None:
    """The process id of the job if it is that of a supervisor, else None."""
    pid = cluster.status()["job"]["pid"]
    return pid if pid is not None and _parent_of(pid) == process.pid else None


def _parent_of(pid: int) -> int | None:
    try:
        return psutil.Process(pid).ppid()
    except psutil.NoSuchProcess:
        return None


def _said(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
