"""The door to the event log tells how it fares."""

from __future__ import annotations

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
