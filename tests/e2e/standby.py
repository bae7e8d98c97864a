"""A second helmstream on a cluster's data folder, which waits for its turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from streaming.embedded.process import ChildProcess
from streaming.supervisor.processes import JOB, STANDBY
from tests.e2e.real_cluster import RealCluster
from tests.e2e.waiting import wait_for

STOP_S = 60.0
"""How long a standby may take to end in order."""


@contextmanager
def standing_by(cluster: RealCluster) -> Iterator[ChildProcess]:
    """A standby, once its job is warm and follows."""
    folder = cluster.folders.root
    process = start_standby(folder, cluster.supervisor.config)
    try:
        wait_for("a standby that follows", lambda: follows(folder))
        yield process
    finally:
        process.terminate(STOP_S)


def start_standby(folder: Path, options: Sequence[str]) -> ChildProcess:
    """Start `helmstream run --standby` in a data folder, as a user starts it."""
    command = [sys.executable, "-m", "streaming.cli", "run", STANDBY, f"--data-dir={folder}"]
    log_path = folder / "log" / "standby.log"
    return ChildProcess.start("standby", [*command, *options], log_path=log_path)


def follows(folder: Path) -> bool:
    """Whether the job of a data folder's first standby is warm, and has read the checkpoint."""
    return "machines, as of event" in _said(folder / "log" / f"{JOB}.standby.log")


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
