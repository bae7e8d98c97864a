"""The log as a Spark source: exact ranges, a cap per batch, going on from the checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from types import SimpleNamespace

import pytest

from state.events import Event
from state.routing import Layout, machine_keys, scope
from streaming.log import source
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.embedded_format import CorruptLog
from streaming.log.event_rows import events_in
from streaming.log.source import HelmstreamLogSource
from tests.fixtures.waiting import wait_for

CAP = 7
LAYOUT = Layout(4, 2)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("log-source")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.dataSource.register(HelmstreamLogSource)
    yield session
    session.stop()


@pytest.fixture
def writer(tmp_path):
    with EmbeddedLogWriter(tmp_path / "events", segment_bytes=2000) as opened:
        yield opened


def new_records(count, start=0):
    kinds = ["topic_observed", "controller_elected", "producer_ids_requested"]
    return [
        NewRecord(kinds[number % 3], f"topic-{number}", b"\x00payload-%d" % number, 1000 + number)
        for number in range(start, start + count)
    ]


def read_stream(spark, tmp_path, **options):
    stream = spark.readStream.format("helmstream_log").option("path", str(tmp_path / "events"))
    layout = {"slots": LAYOUT.slots, "group_slots": LAYOUT.group_slots}
    return stream.option("max_events_per_batch", CAP).options(**layout, **options).load()


def events_of(batches):
    """The events in record batches, in offset order."""
    return events_in(one for batch in batches for one in batch.column("events").to_pylist())


def run_available(frame, tmp_path, fail_in_batch=None, batches=None):
    """Fold what is there now; returns the rows of each batch that was started."""
    batches = {} if batches is None else batches

    def keep(batch, batch_id):
        batches[batch_id] = events_in(row.events for row in batch.collect())
        if batch_id == fail_in_batch:
            raise RuntimeError("the sink dies")

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return batches


def expected_event(offset):
    record = new_records(1, start=offset)[0]
    return Event(offset, record.time_ms, record.kind, record.key, record.payload)


def test_batches_hold_at_most_the_cap_in_log_order(spark, tmp_path, writer):
    writer.append(new_records(40))
    frame = read_stream(spark, tmp_path)
    assert frame.columns == ["scope", "events"]
    batches = run_available(frame, tmp_path)
    rows = [row for batch_id in sorted(batches) for row in batches[batch_id]]
    assert rows == [expected_event(offset) for offset in range(40)]
    assert [len(batches[batch_id]) for batch_id in sorted(batches)] == [7, 7, 7, 7, 7, 5]


def test_a_row_has_the_events_of_the_same_machines(tmp_path, writer):
    writer.append(new_records(60))
    reader = source.HelmstreamLogStreamReader(str(tmp_path / "events"), LAYOUT, 60, 0)
    (batch,), _ = reader.read({"offset": 0})
    scopes = batch.column("scope").to_pylist()
    assert len(scopes) == len(set(scopes)) <= LAYOUT.slots + 2
    for of, parcel in zip(scopes, batch.column("events").to_pylist(), strict=True):
        for one in events_in([parcel]):
            assert machine_keys(scope(one.kind, one.key), LAYOUT) == machine_keys(of, LAYOUT)
    assert [one.offset for one in events_of([batch])] == list(range(60))


def test_a_failed_batch_is_read_again_exactly_and_the_query_goes_on_from_its_checkpoint(
    spark, tmp_path, writer
):
    from pyspark.errors import StreamingQueryException

    writer.append(new_records(20))
    before = {}
    with pytest.raises(StreamingQueryException, match="the sink dies"):
        run_available(read_stream(spark, tmp_path), tmp_path, fail_in_batch=1, batches=before)
    writer.append(new_records(20, start=20))
    after = run_available(read_stream(spark, tmp_path, max_events_per_batch="3"), tmp_path)
    assert after[1] == before[1], "the batch keeps its range, whatever the cap is now"
    rows = [row for batch_id in sorted(after) for row in after[batch_id]]
    assert rows == [expected_event(offset) for offset in range(7, 40)]
    assert {len(rows) for batch_id, rows in after.items() if batch_id > 1} <= {3, 2, 1}
    assert run_available(read_stream(spark, tmp_path), tmp_path) == {}


def test_a_query_without_checkpoint_starts_where_it_is_told_or_where_the_log_starts(
    spark, tmp_path, writer
):
    for number in range(0, 60, 10):
        writer.append(new_records(10, start=number))
    told = run_available(read_stream(spark, tmp_path, start_offset="55"), tmp_path)
    assert [row.offset for row in told[0]] == [55, 56, 57, 58, 59]
    start = writer.truncate_before(30)
    assert 0 < start <= 30
    (tmp_path / "checkpoint").rename(tmp_path / "old-checkpoint")
    batches = run_available(read_stream(spark, tmp_path), tmp_path)
    offsets = [row.offset for batch_id in sorted(batches) for row in batches[batch_id]]
    assert offsets == list(range(start, 60))


def test_a_running_query_gets_what_is_appended_(spark, tmp_path, writer):
    writer.append(new_records(3))
    seen = []

    def see(batch, _batch_id):
        seen.extend(events_in(row.events for row in batch.collect()))

    query = (
        read_stream(spark, tmp_path)
        .writeStream.foreachBatch(see)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        assert [row.offset for row in seen] == [0, 1, 2]
        writer.append(new_records(30, start=3))
        wait_for("all records", lambda: len(seen) >= 33)
        assert [row.offset for row in seen] == list(range(33))
        query.processAllAvailable()
        progress = json.loads(query.lastProgress.json)["sources"][0]
        assert progress["endOffset"] == {"offset": 33}
    finally:
        query.stop()


def test_a_batch_of_large_events_ends_before_it_has_its_number_of_events(
    spark, tmp_path, writer, monkeypatch
):
    writer.append([NewRecord("k", "t", b"x" * 400_000) for _ in range(10)])
    monkeypatch.setattr(source, "MAX_BATCH_BYTES", 1_000_000)
    reader = source.HelmstreamLogStreamReader(str(tmp_path / "events"), LAYOUT, CAP, None)
    start, sizes = reader.initialOffset(), []
    while True:
        batches, end = reader.read(start)
        rows = len(events_of(batches))
        assert end["offset"] - start["offset"] == rows
        if not rows:
            break
        start = end
        sizes.append(rows)
    assert sum(sizes) == 10
    assert max(sizes) <= 4


@pytest.mark.parametrize(("gather_s", "expected"), [(60, 4), (0, 1)])
def test_what_goes_on_to_come_is_gathered_into_a_batch(
    tmp_path, writer, monkeypatch, gather_s, expected
):
    """Until nothing comes any more between two looks, or the time is over."""
    coming = new_records(5)
    looks = iter([1, 2, 0, 1])
    writer.append([coming.pop()])

    def look_later(_seconds):
        count = next(looks)
        if count:
            writer.append([coming.pop() for _ in range(count)])

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=look_later)
    monkeypatch.setattr(source, "time", clock)
    monkeypatch.setattr(source, "GATHER_S", gather_s)
    reader = source.HelmstreamLogStreamReader(str(tmp_path / "events"), LAYOUT, CAP, 0)
    batches, end = reader.read({"offset": 0})
    assert end == {"offset": expected} == {"offset": len(events_of(batches))}


def test_a_batch_that_is_run_again_is_read_where_the_head_is_an_older_one(tmp_path, writer):
    """As another machine may see a file that is mapped."""
    head = tmp_path / "events" / "head"
    writer.append(new_records(3))
    older = head.read_bytes()
    writer.append(new_records(60, 3))
    seen = tmp_path / "seen"
    shutil.copytree(tmp_path / "events", seen)
    (seen / "head").write_bytes(older)
    reader = source.HelmstreamLogStreamReader(str(seen), LAYOUT, CAP, 0)
    batches = reader.readBetweenOffsets({"offset": 2}, {"offset": 63})
    assert [one.offset for one in events_of(batches)] == list(range(2, 63))
    assert source._reader(str(seen)).end_offset() == 3
    with pytest.raises(CorruptLog, match="1 more records were durable"):
        list(reader.readBetweenOffsets({"offset": 62}, {"offset": 64}))


def test_a_query_that_is_ahead_of_its_log_says_so(spark, tmp_path, writer):
    from pyspark.errors import StreamingQueryException

    writer.append(new_records(3))
    with pytest.raises(StreamingQueryException, match="ends at offset 3, the query goes on from 9"):
        run_available(read_stream(spark, tmp_path, start_offset="9"), tmp_path)


def test_what_the_options_must_be(spark, tmp_path, writer):
    stream = spark.readStream.format("helmstream_log")
    with pytest.raises(Exception, match="needs the option 'path': the folder of the log"):
        run_available(stream.load(), tmp_path)
    with pytest.raises(Exception, match="needs both of 'slots' and 'group_slots', or neither"):
        run_available(stream.option("slots", 4).load(), tmp_path)
    with pytest.raises(Exception, match="max_events_per_batch=0 is not positive"):
        run_available(read_stream(spark, tmp_path, max_events_per_batch="0"), tmp_path)
