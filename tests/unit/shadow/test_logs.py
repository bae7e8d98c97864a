"""What a shadow writes beside its report stays within bounds."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.shadow import run
from streaming.shadow.engine import LocalEngine
from streaming.sinks import retention

BATCHES = 60
RETAINED = 2


def test_old_events_are_let_go_of_but_those_of_retained_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_CHECK_EVERY_S", 0)
    given = ["event.log.segment.bytes=4096", f"checkpoint.batches.retained={RETAINED}"]
    settings = load_settings(overrides=[*given, "log.retention.ms=1000"], environment={})
    engine = LocalEngine(settings, DataDir(tmp_path))
    starts = []
    for _ in range(BATCHES):
        record = NewRecord("nobody_knows", "t", b"x" * 500, 1_000)
        until = engine.append([record]).stop
        assert [batch.end_offset for batch in engine.decided(until)] == [until]
        with EmbeddedLogReader(DataDir(tmp_path).events) as events:
            starts.append(events.start_offset())
    engine.close()
    assert 0 < starts[-1] < BATCHES - RETAINED
    assert starts == sorted(starts)
    assert all(start <= max(0, end - RETAINED) for end, start in enumerate(starts, start=1))


def test_the_log_of_a_shadow_moves_aside_when_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(run, "LOG_BYTES_MAX", 1_000)
    path = tmp_path / "log" / "shadow.log"
    run.log_to_file(path)
    for _ in range(100):
        root.warning("something that is said again and again")
    for handler in root.handlers:
        handler.close()
    found = {one.name: one.stat().st_size for one in path.parent.iterdir()}
    assert found.keys() == {"shadow.log", "shadow.log.1"}
    assert max(found.values()) <= 1_000
