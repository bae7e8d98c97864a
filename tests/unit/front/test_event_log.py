"""The door to the event log tells how it fares."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from streaming.front.event_log import EventLog
from streaming.log.api import AppendFailed, LogClosed, NewRecord, RecordRefused
from streaming.log.embedded import EmbeddedLogWriter


@pytest.fixture
def told():
    return {"grown": [], "failed": []}


@pytest.fixture
def log(tmp_path, told):
    with EmbeddedLogWriter(tmp_path / "events") as writer:
        yield EventLog(writer, told["grown"].append, told["failed"].append)


def test_each_append_tells_the_new_end(log, told):
    assert log.append([NewRecord("a", "", b""), NewRecord("b", "", b"")]) == range(2)
    assert log.append([]) == range(2, 2)
    assert log.append([NewRecord("c", "", b"")]) == range(2, 3)
    assert told == {"grown": [2, 3], "failed": []}


def test_a_record_that_is_refused_is_its_appenders_matter(log, told):
    with pytest.raises(RecordRefused):
        log.append([NewRecord("k" * 70_000, "", b"")])
    assert told == {"grown": [], "failed": []}


def test_a_storage_that_fails_is_everybodys(log, told, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streaming.log.embedded_segment.SegmentWriter.write", full)
    with pytest.raises(AppendFailed):
        log.append([NewRecord("a", "", b"")])
    assert [type(error) for error in told["failed"]] == [AppendFailed]
    monkeypatch.undo()


def test_a_closed_log_is_a_failure(tmp_path, told):
    writer = EmbeddedLogWriter(tmp_path / "closed")
    log = EventLog(writer, told["grown"].append, told["failed"].append)
    writer.close()
    with pytest.raises(LogClosed):
        log.append([NewRecord("a", "", b"")])
    assert [type(error) for error in told["failed"]] == [LogClosed]


def test_it_is_silent_from_the_first_append_that_waits_until_all_are_answered(told, monkeypatch):
    times_s = iter([1.0, 3.0])  # of the first append and of the first answer
    clock = SimpleNamespace(monotonic=lambda: next(times_s))
    monkeypatch.setattr("streaming.front.event_log.time", clock)
    asked: list[Future[range]] = []

    class Writer:
        def append_async(self, _: object) -> Future[range]:
            asked.append(Future())
            return asked[-1]

    log = EventLog(Writer(), told["grown"].append, told["failed"].append)
    assert log.silent_since_s is None
    for _ in range(2):
        log.append_async([NewRecord("a", "", b"")])
    assert log.silent_since_s == 1.0
    asked[0].set_result(range(1))
    assert log.silent_since_s == 3.0
    asked[1].set_exception(AppendFailed("full"))
    assert log.silent_since_s is None
