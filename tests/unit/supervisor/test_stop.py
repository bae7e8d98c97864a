"""How the supervisor ends front and job."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.embedded.process import ChildProcess
from streaming.supervisor import processes
from streaming.supervisor.processes import FRONT, JOB, Supervisor
from tests.fixtures.waiting import WAIT_S, wait_for

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

RUN = """
import fcntl, signal, sys, termios
from rich.console import Console
from streaming.settings_loader import load_settings
from streaming.supervisor import processes, run

if sys.stdin.isatty():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
run.find_java = run.check_zookeeper = lambda *_: None
codes = {codes!r}
processes.role_command = lambda role, *_: [sys.executable, "-c", codes[role]]
chosen = ["data.dir={folder}", "zookeeper.connect=127.0.0.1:1", "gateway.port=0"]
run.run(load_settings(overrides=chosen, environment={{}}), [], Console())
"""


def program(folder: Path, code: str) -> str:
    return READY.format(folder=str(folder)) + code


def started(folder: Path, codes: Mapping[str, str]) -> Supervisor:
    """A supervisor of real processes, each of which has set what it does on a signal."""
    supervisor = Supervisor(folder, [])
    for role, code in codes.items():
        supervisor.roles[role].command = [sys.executable, "-c", program(folder, code)]
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


@contextmanager
def running(folder: Path, ours: int, its: int) -> Iterator[subprocess.Popen[bytes]]:
    """`helmstream run` with such a front and job, once it runs; it prints to one end of a terminal
    or pipe, the other one is ours.
    """
    codes = {FRONT: ENDS_ON_SIGNAL, JOB: ENDS_AFTER_THE_FRONT}
    codes = {role: program(folder, code) for role, code in codes.items()}
    command = [sys.executable, "-c", RUN.format(codes=codes, folder=folder)]
    run = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    try:
        wait_for("both", lambda: all((folder / role).exists() for role in codes))
        wait_for("what it says", lambda: b"helmstream is starting in" in os.read(ours, 1000))
        yield run
    finally:
        run.kill()
        run.wait()


def test_a_closed_terminal_ends_both_in_order(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    with running(tmp_path, ours, its) as run:
        os.close(ours)
        assert run.wait(WAIT_S) == 0
    assert (tmp_path / "job ended").exists()


def test_both_end_in_order_though_nobody_reads_what_is_said(tmp_path: Path) -> None:
    ours, its = os.pipe()
    with running(tmp_path, ours, its) as run:
        os.close(ours)
        run.terminate()
        run.wait(WAIT_S)
    assert (tmp_path / "job ended").exists()
