"""The outcome log: nobody waits for it, and what is missing in it is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from streaming.log.api import AppendFailed, LogClosed, LogWriter, NewRecord
from streaming.sinks.outcome_log import OutcomeLog, open_outcomes, outcome


class Disk:
    """A log that is full, or not; broken: its writer has given up."""

    def __init__(self) -> None:
        self.full = False
        self.broken = False
        self.taken = 0

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        appended: Future[range] = Future()
        if self.broken:
            appended.set_exception(LogClosed("the writer gave up"))
        elif self.full:
            appended.set_exception(AppendFailed("no space left"))
        else:
            self.taken += len(records)
            appended.set_result(range(len(records)))
        return appended

    def close(self) -> None:
        self.broken = True


def test_records_that_are_not_written_are_told_once_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    log = OutcomeLog(lambda: cast(LogWriter, disk))
    for disk.full in (False, True, True, False, True):
        log.append([outcome("confirmed", {"broker_id": 1})])
    assert caplog.text.count("the outcome log misses") == 2
    assert "no space left" in caplog.text


def test_a_log_whose_writer_gave_up_is_opened_again_in_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disks = [Disk()]
    clock = SimpleNamespace(s=0.0)

    def opened() -> Disk:
        if not disks:
            raise OSError("still broken")
        return disks.pop()

    record = [outcome("confirmed", {"broker_id": 1})]
    first, second = disks[0], Disk()
    log = OutcomeLog(opened, lambda: clock.s)
    first.broken = True
    for clock.s in (1.0, 30.0, 61.0, 100.0):
        log.append(record)
    assert caplog.text.count("still broken") == 1, "at 61 s"
    disks.append(second)
    for clock.s in (120.0, 122.0, 123.0):
        log.append(record)
    assert second.taken == 2
    log.close()
    disks.append(Disk())
    for clock.s in (200.0, 300.0):
        log.append(record)
    assert disks, "it is closed for good"


def test_a_damaged_log_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "outcomes"
    record = [outcome("confirmed", {"broker_id": 1})]
    for _ in range(2):
        with open_outcomes(folder) as log:
            assert log.append(record) == range(1)
        (segment,) = folder.glob("*.log")
        segment.write_bytes(segment.read_bytes()[:-1])
        caplog.clear()
        with open_outcomes(folder) as log:
            assert log.end_offset() == 0
        assert f"kept as {folder}.broken" in caplog.text


def test_its_times_do_not_stop_where_a_wrong_clock_left_them(tmp_path: Path) -> None:
    """They would never be old enough to be cut."""
    ahead = [NewRecord("confirmed", "", b"{}", 2**50)]
    with open_outcomes(tmp_path) as log:
        log.append(ahead)
    with open_outcomes(tmp_path) as log:
        before = log.last_time_ms()
        time.sleep(0.01)
        log.append([outcome("confirmed", {})])
        assert log.last_time_ms() > before
