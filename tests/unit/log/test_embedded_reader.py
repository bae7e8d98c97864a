"""Reading: large logs through small windows, columns, the index, and the ends of ranges."""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest

from streaming.log import embedded_read_segment
from streaming.log.api import LogRecord, NewRecord, OffsetOutOfRange
from streaming.log.embedded import EmbeddedLogReader


@pytest.fixture
def large(open_writer):
    """3,000 records of very different sizes: several chunks, records larger than a chunk."""
    writer = open_writer()
    sizes = random.Random(3)
    payloads = [sizes.randbytes(sizes.choice([0, 20, 700])) for _ in range(3000)]
    payloads[1500] = sizes.randbytes(2_500_000)
    payloads[2999] = sizes.randbytes(1_100_000)
    writer.append([NewRecord("k", f"t{n}", payload) for n, payload in enumerate(payloads)])
    return payloads


def test_any_range_in_any_order_is_exact(folder, large):
    places = random.Random(5)
    with EmbeddedLogReader(folder) as reader:
        for _ in range(60):
            start = places.randrange(3000)
            end = places.randrange(start, min(start + 400, 3000) + 1)
            records = list(reader.read(start, end))
            assert [record.offset for record in records] == list(range(start, end))
            assert [record.payload for record in records] == large[start:end]


def test_rows_hold_what_records_hold(folder, large):
    with EmbeddedLogReader(folder) as reader:
        rows = [row for chunk in reader.event_rows(1000, 3000) for row in chunk]
        assert [LogRecord(*row) for row in rows] == list(reader.read(1000, 3000))
        assert list(reader.event_rows(7, 7)) == []


def test_the_segment_of_a_time_is_found_without_reading_a_record(folder, open_writer, monkeypatch):
    writer = open_writer(segment_bytes=1_000)
    times = sorted(random.Random(7).choices(range(50), k=200))
    for time_ms in times:
        writer.append([NewRecord("k", "", b"x" * 80, time_ms)])
    starts = [int(file.stem) for file in sorted(folder.glob("*.log"))]
    assert len(starts) > 10
    monkeypatch.setattr(embedded_read_segment, "parse_records", None)
    with EmbeddedLogReader(folder) as reader:
        for time_ms in range(-1, 52):
            older = sum(one < time_ms for one in times)
            assert reader.segment_at(time_ms) == max(one for one in starts if one <= older)
        for deleted in starts[:4]:
            (folder / f"{deleted:020d}.log").unlink()
        assert reader.segment_at(0) == starts[4]


def test_reading_near_the_end_does_not_read_from_the_start_again(folder, large, monkeypatch):
    bytes_read = 0
    pread = os.pread

    def counted(fd: int, size: int, position: int) -> bytes:
        nonlocal bytes_read
        data = pread(fd, size, position)
        bytes_read += len(data)
        return data

    with EmbeddedLogReader(folder) as reader:
        assert len(list(reader.read(0, 3000))) == 3000
        monkeypatch.setattr(os, "pread", counted)
        for offset in (1400, 1700, 2900):
            assert [record.offset for record in reader.read(offset, offset + 1)] == [offset]
    assert bytes_read <= 3 * 2 * 256 * 1024


def test_few_segments_stay_open_however_many_were_read(folder, open_writer, records):
    writer = open_writer(segment_bytes=1)
    for record in records(40):
        writer.append([record])
    with EmbeddedLogReader(folder) as reader:
        assert [one.offset for one in reader.read(0, 40)] == list(range(40))
        opened = [Path(one.path) for one in psutil.Process().open_files()]
        segments = [one for one in opened if one.parent == folder.resolve()]
        assert len([one for one in segments if one.suffix == ".log"]) < 12
        assert [one.offset for one in reader.read(3, 20)] == list(range(3, 20))


def test_ranges_outside_of_the_log_are_refused_at_once(folder, open_writer, records):
    open_writer().append(records(4))
    with EmbeddedLogReader(folder) as reader:
        assert list(reader.read(4, 4)) == []
        with pytest.raises(OffsetOutOfRange, match=r"offset 5 is outside .* \[0, 4\)"):
            reader.read(0, 5)
        with pytest.raises(OffsetOutOfRange, match="offset -1"):
            reader.read(-1, 2)
        with pytest.raises(ValueError, match="start 3 is after end 2"):
            reader.read(3, 2)


def test_rows_before_what_is_retained_are_refused_with_what_the_log_has(
    folder, open_writer, records
):
    writer = open_writer(segment_bytes=1)
    for record in records(9):
        writer.append([record])
    writer.truncate_before(7)
    refused = pytest.raises(OffsetOutOfRange, match=r"offset 2 is outside .* \[7, 9\)")
    with EmbeddedLogReader(folder) as reader, refused:
        reader.event_rows(2, 4)


def test_a_range_that_retention_takes_while_it_is_read_is_refused(folder, open_writer, records):
    writer = open_writer(segment_bytes=1)
    for record in records(6):
        writer.append([record])
    with EmbeddedLogReader(folder) as reader:
        taken = reader.read(0, 6)
        assert next(taken).offset == 0
        writer.truncate_before(5)
        with pytest.raises(OffsetOutOfRange) as error:
            list(taken)
        assert (error.value.offset, error.value.start_offset) == (1, 5)
