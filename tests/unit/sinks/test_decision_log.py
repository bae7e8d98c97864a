"""The decision log as the job opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.log.api import NewRecord
from streaming.log.decision_writer import RecordId
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.sinks.decision_log import open_decisions


def append_events(folders: DataDir, count: int) -> None:
    with EmbeddedLogWriter(folders.events) as events:
        events.append([NewRecord("topic_removed", "t", b"{}")] * count)


@pytest.mark.parametrize("events", [None, 0, 2])
def test_decisions_about_another_event_log_are_refused_with_what_to_do(
    tmp_path: Path, events: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decided up to the last of them would be taken for what is there already."""
    monkeypatch.setattr("streaming.log.recorded._HEAD_TIMEOUT_S", 0.2)
    folders = DataDir(tmp_path)
    if events is not None:
        append_events(folders, events)
    with EmbeddedLogWriter(folders.decisions) as log:
        log.append([NewRecord("change_partitions", "2:0", b"{}")])
    said = f"about event 2, .* ends at {events or 0}: .* move .*decisions aside"
    with pytest.raises(ConfigurationError, match=said):
        open_decisions(folders)
    append_events(folders, 3 - (events or 0))
    log, writer = open_decisions(folders)
    assert writer.last_id == RecordId(2, 0)
    log.close()


def test_a_new_decision_log_needs_no_events(tmp_path: Path) -> None:
    log, writer = open_decisions(DataDir(tmp_path))
    assert writer.last_id is None
    log.close()
