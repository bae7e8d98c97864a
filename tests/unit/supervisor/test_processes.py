"""What the supervisor does about processes that end."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from checkpoints.layout import check_layout
from state.routing import Layout
from streaming.log.writer_lock import WriterLock
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.starting.job_lock import JobLock
from streaming.supervisor import processes
from streaming.supervisor.processes import (
    FRONT,
    JOB,
    HopelessRole,
    Supervised,
    Supervisor,
    keep_bounded,
    role_command,
    stop_together,
)
from tests.fixtures.waiting import WAIT_S, wait_for


def role_that(code: str, tmp_path: Path) -> Supervised:
    return Supervised("job", [sys.executable, "-c", code], tmp_path / "job.log")


def keep_until_started_again(role: Supervised) -> None:
    def started_again() -> bool:
        role.keep_running()
        return role.starts >= 3

    wait_for("two more starts", started_again)


@pytest.mark.parametrize("ending", ["raise SystemExit(1)", "raise SystemExit(4)", "1 / 0", "pass"])
def test_a_process_that_ends_is_started_again(ending: str, tmp_path: Path) -> None:
    role = role_that(ending, tmp_path)
    role.start()
    keep_until_started_again(role)
    stop_together([role])


def test_a_process_that_cannot_run_as_configured_is_given_up_with_its_reason(
    tmp_path: Path,
) -> None:
    role = role_that(
        "print('error: an earlier one'); print('error: slots was 8, now it is 16');"
        "print('WARN ShutdownHookManager: error: no folder'); exit(2)",
        tmp_path,
    )
    role.start()
    with pytest.raises(HopelessRole) as caught:
        keep_until_started_again(role)
    assert role.starts == 1
    assert caught.value.exit_code == 2
    log = tmp_path / "job.log"
    reason = f"the job cannot run: slots was 8, now it is 16 (its log is {log})"
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("ending", "said"),
    [("exit(4)", "ended with code 4"), ("os.kill(os.getpid(), 9)", "was killed by signal 9")],
)
def test_how_a_process_ended_is_said_and_that_it_is_started_again(
    ending: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    role = role_that(f"import os; {ending}", tmp_path)
    role.start()
    keep_until_started_again(role)
    stop_together([role])
    see = f"see {tmp_path / 'job.log'}; it is started again"
    assert {one.getMessage() for one in caplog.records} == {f"job {said}, {see}"}


def test_a_process_that_ran_with_its_configuration_before_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "_PROVEN_S", 0.0)
    ran = tmp_path / "ran"
    role = role_that(
        f"import pathlib; ran = pathlib.Path({str(ran)!r});"
        "(print('error: no topic yet'), exit(2)) if ran.exists() else (ran.touch(), exit(1))",
        tmp_path,
    )
    role.start()
    assert role.child is not None
    assert role.child.wait(WAIT_S)
    role.keep_running()
    monkeypatch.setattr(processes, "_PROVEN_S", 3600.0)
    keep_until_started_again(role)
    stop_together([role])
    said = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    see = f"(its log is {tmp_path / 'job.log'}); it is started again"
    assert said[:1] == [f"job ended with code 2: no topic yet {see}"]


def test_a_process_that_only_waited_with_its_configuration_is_given_up(tmp_path: Path) -> None:
    role = role_that("exit(2)", tmp_path)
    role.start()
    role.in_role_since = role.started_at - 60
    with pytest.raises(HopelessRole):
        keep_until_started_again(role)
    assert role.starts == 1


def waiting(tmp_path: Path, *, takes_over: bool) -> tuple[Supervised, Path]:
    """A standby that was started an hour ago, and the file that ends it with code 2."""
    end = tmp_path / "end"
    code = f"import pathlib, time; end = pathlib.Path({str(end)!r})\n"
    code += "while not end.exists(): time.sleep(0.01)\nexit(2)"
    role = role_that(code, tmp_path)
    role.standby, role.has_role = True, lambda _: takes_over
    role.start()
    role.started_at -= 3600
    role.keep_running()
    return role, end


def test_a_standby_that_ends_at_its_take_over_is_given_up_however_long_it_waited(
    tmp_path: Path,
) -> None:
    role, end = waiting(tmp_path, takes_over=False)
    role.has_role = lambda _: True
    role.keep_running()
    end.touch()
    with pytest.raises(HopelessRole):
        keep_until_started_again(role)
    assert role.starts == 1


def test_a_standby_that_had_its_role_for_long_is_started_again(tmp_path: Path) -> None:
    role, end = waiting(tmp_path, takes_over=True)
    assert role.in_role_since is not None
    role.in_role_since -= 3600
    end.touch()
    keep_until_started_again(role)
    stop_together([role])


def test_who_has_a_lock_has_its_role(tmp_path: Path) -> None:
    roles, folders = Supervisor(tmp_path, []).roles, DataDir(tmp_path)

    def has(pid: int = os.getpid()) -> list[str]:
        return [name for name, role in roles.items() if role.has_role(pid)]

    assert has() == []
    with WriterLock(folders.events):
        assert has() == [FRONT]
        with JobLock(folders.job_lock) as lock:
            assert has() == [FRONT]
            lock.acquire()
            assert has() == [FRONT, JOB]
            assert has(os.getpid() + 1) == []


def test_a_log_that_grows_is_moved_aside_while_its_process_goes_on(tmp_path: Path) -> None:
    log, old = tmp_path / "job.log", tmp_path / "job.log.1"
    keep_bounded(log)  # it need not be there
    with log.open("ab") as writing:
        writing.write(b"one\n")
        writing.flush()
        keep_bounded(log, bytes_max=4)
        assert not old.exists()
        keep_bounded(log, bytes_max=3)
        writing.write(b"two\n")
        writing.flush()
        assert (old.read_bytes(), log.read_bytes()) == (b"one\n", b"two\n")
        keep_bounded(log, bytes_max=3)
    assert (old.read_bytes(), log.read_bytes()) == (b"two\n", b"")


def test_a_supervised_process_has_its_log_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Path] = []
    monkeypatch.setattr(processes, "keep_bounded", looked_at.append)
    role = role_that("pass", tmp_path)
    role.start()
    role.keep_running()
    stop_together([role])
    assert looked_at == [tmp_path / "job.log"]


def test_a_process_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    role = role_that("pass", tmp_path)
    role.start()
    assert role.child is not None
    assert role.child.wait(WAIT_S)
    role.log_path.unlink()
    role.log_path.mkdir()  # nothing can be logged there

    def tried_twice() -> bool:
        role.keep_running()
        return role.back_off.next_s > processes._FIRST_BACKOFF_S * 4

    wait_for("two tries after the end", tried_twice)
    assert role.starts == 1
    role.log_path.rmdir()
    keep_until_started_again(role)
    stop_together([role])


def test_a_log_that_cannot_be_moved_aside_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    role = role_that("import time; time.sleep(60)", tmp_path)
    role.start()
    role.log_path.write_bytes(b"more")
    (tmp_path / "job.log.1").mkdir()
    monkeypatch.setattr(processes, "keep_bounded", partial(keep_bounded, bytes_max=3))
    monkeypatch.setattr(processes, "_LONGEST_BACKOFF_S", 0.0)
    for _ in range(3):
        role.keep_running()
    assert [one.getMessage() for one in caplog.records] == [
        f"{role.log_path} is not kept within bounds: [Errno 21] Is a directory:"
        f" '{tmp_path / 'job.log.1'}'"
    ]
    (tmp_path / "job.log.1").rmdir()
    role.keep_running()
    assert role.log_path.read_bytes() == b""
    stop_together([role])


@pytest.mark.slow
def test_a_job_whose_checkpoint_was_made_with_other_slots_is_given_up(tmp_path: Path) -> None:
    settings = load_settings()
    check_layout(
        DataDir(tmp_path).checkpoint,
        Layout(settings.slots + 1, settings.group_slots),
        settings.shuffle_partitions,
    )
    command = role_command(JOB, tmp_path, ["--set=zookeeper.connect=127.0.0.1:1"])
    role = Supervised(JOB, command, tmp_path / "job.log")
    role.start()
    with pytest.raises(HopelessRole, match=r"the job cannot run: the checkpoint .* was made with"):
        keep_until_started_again(role)
    assert role.starts == 1
