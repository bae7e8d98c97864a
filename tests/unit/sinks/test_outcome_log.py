"""The outcome log: nobody waits for it, and what is missing in it is told."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from streaming.log.api import AppendFailed, NewRecord
from streaming.sinks.outcome_log import OutcomeLog, outcome


class Disk:
    """A log that is full, or not."""

    def __init__(self) -> None:
        self.full = False

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        appended: Future[range] = Future()
        if self.full:
            appended.set_exception(AppendFailed("no space left"))
        else:
            appended.set_result(range(len(records)))
        return appended


def test_records_that_are_not_written_are_told_once_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = Disk()
    log = OutcomeLog(disk)
    for disk.full in (False, True, True, False, True):
        log.append([outcome("confirmed", {"broker_id": 1})])
    assert caplog.text.count("the outcome log misses") == 2
    assert "no space left" in caplog.text
