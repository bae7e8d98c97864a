"""How the supervisor ends front and job."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from streaming.embedded.process import ChildProcess
from streaming.supervisor import processes
from streaming.supervisor.processes import FRONT, JOB, Supervisor
from tests.fixtures.waiting import wait_for

READY = "import pathlib, signal, sys, time; here = pathlib.Path({folder!r});"
ENDS_ON_SIGNAL = (
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit((here / 'front ended').touch()));"
    "(here / 'front').touch(); time.sleep(60)"
)
ENDS_AFTER_THE_FRONT = """
signal.signal(signal.SIGTERM, lambda *_: None)
(here / 'job').touch()
while not (here / 'front ended').exists():
    time.sleep(0.01)
(here / 'job ended').touch()
"""
DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(here / 'job').touch()
time.sleep(60)
"""


def started(folder: Path, codes: Mapping[str, str]) -> Supervisor:
    """A supervisor of real processes, each of which has set what it does on a signal."""
    supervisor = Supervisor(folder, [])
    for role, code in codes.items():
        program = READY.format(folder=str(folder)) + code
        supervisor.roles[role].command = [sys.executable, "-c", program]
    supervisor.start()
    wait_for("both", lambda: all((folder / role).exists() for role in codes))
    return supervisor


def test_the_front_gives_the_role_back_while_the_job_takes_its_time(tmp_path: Path) -> None:
    supervisor = started(tmp_path, {FRONT: ENDS_ON_SIGNAL, JOB: ENDS_AFTER_THE_FRONT})
    supervisor.stop()
    assert (tmp_path / "job ended").exists(), "it was killed: the front was not told meanwhile"


def test_a_job_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_STOP_TIMEOUT_S", 0.2)
    supervisor = started(tmp_path, {FRONT: ENDS_ON_SIGNAL, JOB: DEAF})
    job = supervisor.roles[JOB].child
    assert job is not None
    began_s = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - began_s < processes._KILL_TIMEOUT_S
    assert job.return_code == -9


def test_a_front_that_cannot_be_killed_keeps_no_job_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a disk that hangs: the kernel lets go of the process later."""
    monkeypatch.setattr(processes, "_STOP_TIMEOUT_S", 0.2)
    supervisor = started(tmp_path, {FRONT: DEAF.replace("job", "front"), JOB: DEAF})
    front, job = (supervisor.roles[role].child for role in (FRONT, JOB))
    assert front is not None
    assert job is not None
    kill = ChildProcess.kill

    def stuck(child: ChildProcess, timeout_s: float = 60.0) -> None:
        if child is front:
            raise subprocess.TimeoutExpired("front", timeout_s)
        kill(child, timeout_s)

    monkeypatch.setattr(ChildProcess, "kill", stuck)
    supervisor.stop()
    kill(front)
    assert job.return_code == -9
    said = f"front was killed and is still there: process {front.pid}"
    assert [one.getMessage() for one in caplog.records] == [said]
