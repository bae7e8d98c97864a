"""How long logs are kept: by time, and the event log as far back as a retained batch needs it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from kafka import KafkaConsumer

from streaming.log import kafka_reader, kept_reader, recorded
from streaming.log.api import LogUnavailable, NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.sinks import retention
from streaming.sinks.retention import Retention

SEGMENT_BYTES = 4_096
RECORDS = 100
OLD, LONG_MS = 40, 10**9
DAY_MS = 86_400_000
TEN_YEARS_MS = 3_650 * DAY_MS


@pytest.fixture
def folders(tmp_path):
    return DataDir(tmp_path)


@pytest.fixture
def decisions(folders):
    """A log of which the first 40 records are very old; so is the event log beside it."""
    records = [
        NewRecord("k", "", b"x" * 200, 1_000 if number < OLD else None) for number in range(RECORDS)
    ]
    with (
        EmbeddedLogWriter(folders.events, segment_bytes=SEGMENT_BYTES) as events,
        EmbeddedLogWriter(folders.decisions, segment_bytes=SEGMENT_BYTES) as log,
    ):
        for record in records:
            events.append([record])
            log.append([record])
        yield log


@pytest.fixture
def kept(folders, decisions, monkeypatch):
    monkeypatch.setattr(retention, "_CHECK_EVERY_S", 0)
    writers = {folders.decisions: decisions}
    return Retention(folders, writers, retention_ms=LONG_MS, batches_retained=2)


def checked(kept, end):
    kept.folded(end)
    return kept.checked()


def test_events_are_kept_as_long_as_a_retained_batch_needs_them(kept, decisions):
    assert [checked(kept, end) for end in (10, 20)] == [0, 0], "the first batch is retained"
    assert checked(kept, 30) == 10
    assert kept.checked() == 10
    *_, by_time = found = [checked(kept, end) for end in (70, 80, 90)]
    assert found == [20, 30, decisions.start_offset()], "not longer than by time"
    assert 30 < by_time <= OLD


def test_a_log_that_was_written_under_a_wrong_clock_still_grows_old(folders, monkeypatch, caplog):
    """Its times never go back: by the clock's it would be kept for ten years."""
    monkeypatch.setattr(retention, "_CHECK_EVERY_S", 0)
    now_ms = TEN_YEARS_MS
    with EmbeddedLogWriter(folders.decisions, segment_bytes=SEGMENT_BYTES) as log:
        kept = Retention(
            folders,
            {folders.decisions: log},
            retention_ms=DAY_MS,
            batches_retained=2,
            now_ms=lambda: 0,
        )
        starts = []
        for day in range(8):
            log.append([NewRecord("k", "", b"x" * SEGMENT_BYTES, now_ms + day * DAY_MS)])
            kept.checked()
            starts.append(log.start_offset())
    assert starts == [0, 0, 1, 2, 3, 4, 5, 6]
    assert caplog.text.count("ahead of the clock") == 1


def test_a_clock_that_is_set_ends_no_log(folders, decisions, monkeypatch):
    monkeypatch.setattr(retention, "_CHECK_EVERY_S", 0)
    writers = {folders.decisions: decisions}
    kept = Retention(folders, writers, retention_ms=TEN_YEARS_MS, batches_retained=2)
    clock: Any = kept._now_ms
    monkeypatch.setattr(clock.__self__, "_wall_ms", lambda: 100 * TEN_YEARS_MS)
    kept.checked()
    assert decisions.start_offset() > 0, "only what is old without it"
    assert decisions.start_offset() <= OLD


def test_events_on_a_log_cluster_that_is_away_are_cut_later(kept, monkeypatch, caplog):
    for end in (10, 20, 30):
        checked(kept, end)

    def away(_):
        raise LogUnavailable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(kept_reader, "open_log", away)
        assert [checked(kept, 60), kept.checked()] == [10, 10]
    assert caplog.text.count("no answer") == 1, "not with every batch"
    assert checked(kept, 70) == 30


@pytest.mark.parametrize("damaged", ["events", "decisions"])
def test_a_damaged_old_segment_stops_neither_batches_nor_the_other_logs(
    kept, folders, decisions, damaged, caplog
):
    folder = getattr(folders, damaged)
    for segment in sorted(folder.glob("*.log"))[1:-1]:
        segment.write_bytes(bytes(segment.stat().st_size))
    for end in (40, 50, 60):
        retain_from = checked(kept, end)
    assert (retain_from > 0) == (damaged != "events")
    assert (decisions.start_offset() > 0) == (damaged != "decisions")
    assert caplog.text.count(f"the log at {folder}") == 1


def test_a_retention_longer_than_the_epoch_keeps_a_topic_whole_and_opens_it_once(
    kept, folders, monkeypatch
):
    consumer = Mock(partitions_for_topic=Mock(return_value={0}))
    found = SimpleNamespace(offset=3)
    consumer._fetcher.offsets_by_times = lambda times, _: dict.fromkeys(times, found)
    consumer.offsets_for_times = lambda *args: KafkaConsumer.offsets_for_times(consumer, *args)
    opening = Mock(return_value=consumer)
    monkeypatch.setattr(kafka_reader, "open_consumer", opening)
    monkeypatch.setattr(recorded, "last_time_ms", lambda _: 0)
    on_topic = DataDir(folders.root, "kafka://127.0.0.1:1/events")
    forever = Retention(on_topic, {}, retention_ms=2**63 - 1, batches_retained=2)
    assert [checked(forever, end) for end in (10, 20, 30, 40)] == [0, 0, 3, 3]
    opening.assert_called_once()
    forever.close()
    consumer.close.assert_called_once_with()
