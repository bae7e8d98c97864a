"""One job a data folder: who has the lock, and what its last holder left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from streaming.checkpoint_tools.moves import job_stopped
from streaming.errors import HelmstreamError
from streaming.paths import DataDir
from streaming.starting.job_lock import JobLock, JobLocked
from tests.fixtures.waiting import WAIT_S

HOLD = """
import sys, time
from pathlib import Path
from streaming.starting.job_lock import JobLock
lock = JobLock(Path(sys.argv[1]))
lock.acquire()
lock.note_jvm(int(sys.argv[2]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def jvm() -> Iterator[subprocess.Popen[bytes]]:
    """Stands for the JVM of a job."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def holder(tmp_path: Path, jvm: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "job.lock"), str(jvm.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOTSUP, 2), (errno.ENOSYS, 2), (errno.ENOLCK, 1)]
)
def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, number, code):
    def flock(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        JobLock(tmp_path / "job.lock") as lock,
        pytest.raises(HelmstreamError, match=r"job\.lock cannot be locked .* with flock") as told,
    ):
        lock.acquire()
    assert told.value.exit_code == code


def test_a_second_job_is_refused_and_told_who_is_the_first(tmp_path, holder, jvm):
    with JobLock(tmp_path / "job.lock") as lock:
        assert not lock.try_acquire()
        with pytest.raises(JobLocked, match=rf"held by process {holder.pid}.* run --standby"):
            lock.acquire()
        with (
            pytest.raises(JobLocked, match="stop helmstream first"),
            job_stopped(DataDir(tmp_path)),
        ):
            pass
    assert jvm.poll() is None


def test_the_jvm_that_a_killed_job_left_is_ended_by_the_next(tmp_path, holder, jvm):
    holder.kill()
    holder.wait(WAIT_S)
    assert jvm.poll() is None
    with JobLock(tmp_path / "job.lock") as lock:
        lock.acquire()
        assert jvm.poll() == -signal.SIGKILL, "nobody has reaped it yet"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the time is all there is")
def test_the_jvm_of_a_killed_job_is_known_though_the_wall_clock_was_set_meanwhile(
    tmp_path, holder, jvm, monkeypatch
):
    holder.kill()
    holder.wait(WAIT_S)
    create_time = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda one: create_time(one) + 3_600)
    with JobLock(tmp_path / "job.lock") as lock:
        lock.acquire()
        assert jvm.poll() == -signal.SIGKILL, "nobody has reaped it yet"


def test_a_process_that_only_has_the_number_of_that_jvm_is_left_alone(tmp_path, jvm):
    path = tmp_path / "job.lock"
    with JobLock(path) as lock:
        lock.acquire()
        lock.note_jvm(jvm.pid)
    noted = orjson.loads(path.read_bytes())
    noted["jvm"]["started"] += "1"
    path.write_bytes(orjson.dumps(noted))
    with JobLock(path) as lock:
        lock.acquire()
    assert jvm.poll() is None


def test_an_orderly_end_leaves_nothing_to_end(tmp_path, jvm):
    path = tmp_path / "job.lock"
    with JobLock(path) as lock:
        lock.acquire()
        lock.note_jvm(jvm.pid)
        lock.done()
    with JobLock(path) as lock:
        lock.acquire()
    assert jvm.poll() is None
