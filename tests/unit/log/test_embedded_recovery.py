"""Bytes that are torn, cut or flipped: what was durable is kept or named, never quietly lost."""

from __future__ import annotations

import pickle
import shutil

import pytest

from streaming.log.api import LogError, OffsetOutOfRange
from streaming.log.embedded import CorruptLog, EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.embedded_format import HEADER_BYTES, RECORD_HEADER_BYTES, list_segments
from streaming.log.embedded_head import Head


def ends_of(folder, count):
    """The file position after each record of the only segment, from the sizes of its fields."""
    with EmbeddedLogReader(folder) as reader:
        position = HEADER_BYTES
        ends = []
        for record in reader.read(0, count):
            body = len(record.kind.encode()) + len(record.key.encode()) + len(record.payload)
            position += RECORD_HEADER_BYTES + body
            ends.append(position)
    return ends


def segment_of(folder):
    (base,) = list_segments(folder)
    return folder / f"{base:020d}.log"


def set_head(folder, end_offset):
    """What a head file says that reached the disk before the newest appends did."""
    head = Head(folder / "head", writable=True)
    head.publish(end_offset)
    head.close()


def keys_of(folder):
    with EmbeddedLogReader(folder) as reader:
        return [record.key for record in reader.read(0, reader.end_offset())]


@pytest.mark.parametrize("one_group", [True, False])
def test_a_tail_torn_at_any_byte_is_cut_to_the_whole_records(
    folder, open_writer, records, one_group
):
    writer = open_writer()
    writer.append(records(3))
    last = records(3, start=3)
    for group in [last] if one_group else [[record] for record in last]:
        writer.append(group)
    writer.close()
    file = segment_of(folder)
    whole = file.read_bytes()
    ends = ends_of(folder, 6)
    assert ends[-1] == len(whole)
    for size in range(ends[2], len(whole) + 1):
        file.write_bytes(whole[:size])
        set_head(folder, 3)
        keep = sum(end <= size for end in ends)
        with EmbeddedLogWriter(folder) as again:
            assert again.end_offset() == keep, f"cut at byte {size}"
            assert again.append(records(1, start=100)) == range(keep, keep + 1)
        assert keys_of(folder) == [*(f"topic-{n}" for n in range(keep)), "topic-100"]


def test_garbage_after_the_last_record_is_cut(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(3))
    writer.close()
    file = segment_of(folder)
    whole = file.read_bytes()
    for garbage in (b"\0" * 5000, b"\xff" * 5000, whole[HEADER_BYTES:] * 3, b"\1"):
        file.write_bytes(whole + garbage)
        with EmbeddedLogWriter(folder) as again:
            assert again.end_offset() == 3
        assert file.read_bytes() == whole


def test_a_group_that_reached_the_disk_in_parts_is_cut_where_it_breaks(
    folder, open_writer, records
):
    """Pages of one write reach the disk in any order: later records whole, an earlier one not."""
    writer = open_writer()
    writer.append(records(2))
    writer.append(records(4, start=2))
    writer.close()
    file = segment_of(folder)
    data = bytearray(file.read_bytes())
    ends = ends_of(folder, 6)
    data[ends[2] : ends[3]] = bytes(ends[3] - ends[2])
    file.write_bytes(data)
    set_head(folder, 2)
    with EmbeddedLogWriter(folder) as again:
        assert again.end_offset() == 3
    assert keys_of(folder) == ["topic-0", "topic-1", "topic-2"]


@pytest.mark.parametrize("head", ["fresh", "stale", "missing"])
def test_any_flipped_byte_in_the_middle_is_named_and_what_is_before_it_is_read(
    folder, open_writer, records, head
):
    writer = open_writer()
    for record in records(5):
        writer.append([record])
    writer.close()
    file = segment_of(folder)
    whole = file.read_bytes()
    ends = ends_of(folder, 5)
    for position in range(ends[1], ends[2]):
        for mask in (1, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[position] ^= mask
            file.write_bytes(damaged)
            set_head(folder, {"fresh": 5, "stale": 1, "missing": 5}[head])
            if head == "missing":
                (folder / "head").unlink()
            with pytest.raises(CorruptLog) as error:
                EmbeddedLogWriter(folder)
            assert (error.value.file, error.value.position, error.value.offset) == (
                str(file),
                ends[1],
                2,
            )
            assert file.read_bytes() == damaged, "corruption is not repaired by cutting"
            assert "restore the file, or start with an empty data.dir" in str(error.value)
            assert "'head'" not in str(error.value), "it would be refused without its head too"
    set_head(folder, 5)
    with EmbeddedLogReader(folder) as reader:
        assert [record.key for record in reader.read(0, 2)] == ["topic-0", "topic-1"]
        before = []
        with pytest.raises(CorruptLog, match=r"at byte .*, offset 2: "):
            before.extend(record.key for record in reader.read(0, 5))
        with pytest.raises(CorruptLog):
            list(reader.event_rows(0, 5))
    file.write_bytes(whole)
    with EmbeddedLogReader(folder) as reader:
        assert len(list(reader.read(0, 5))) == 5


def test_records_before_a_bad_one_are_given_first(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(5))
    file = segment_of(folder)
    ends = ends_of(folder, 5)
    data = bytearray(file.read_bytes())
    data[ends[3] - 1] ^= 1
    file.write_bytes(data)
    given = []
    with EmbeddedLogReader(folder) as reader, pytest.raises(CorruptLog, match="checksum"):
        given.extend(record.offset for record in reader.read(0, 5))
    assert given == [0, 1, 2]


@pytest.mark.parametrize("bytes_missing", [1, 40, 60])
def test_a_tail_that_was_acknowledged_is_never_cut(folder, open_writer, records, bytes_missing):
    writer = open_writer()
    writer.append(records(4))
    writer.close()
    file = segment_of(folder)
    cut = file.read_bytes()[:-bytes_missing]
    file.write_bytes(cut)
    ways = r"up to offset 3 were durable.*delete the file 'head'.*empty data.dir"
    with pytest.raises(CorruptLog, match=ways):
        EmbeddedLogWriter(folder)
    assert file.read_bytes() == cut
    (folder / "head").unlink()
    with EmbeddedLogWriter(folder) as again:
        assert again.end_offset() == (3 if bytes_missing <= 60 else 2)


def test_a_flip_in_an_older_segment_is_found_on_reading(folder, open_writer, records):
    writer = open_writer(segment_bytes=200)
    for record in records(9):
        writer.append([record])
    writer.close()
    bases = list_segments(folder)
    file = folder / f"{bases[1]:020d}.log"
    data = bytearray(file.read_bytes())
    data[HEADER_BYTES + RECORD_HEADER_BYTES] ^= 4
    file.write_bytes(data)
    open_writer().append(records(1, start=9))
    with EmbeddedLogReader(folder) as reader:
        assert len(list(reader.read(0, bases[1]))) == bases[1]
        assert len(list(reader.read(bases[2], 10))) == 10 - bases[2]
        with pytest.raises(CorruptLog) as error:
            list(reader.read(0, 10))
    assert (error.value.file, error.value.offset) == (str(file), bases[1])


def test_an_older_segment_that_is_cut_is_found_on_reading(folder, open_writer, records):
    writer = open_writer(segment_bytes=200)
    for record in records(9):
        writer.append([record])
    bases = list_segments(folder)
    file = folder / f"{bases[0]:020d}.log"
    file.write_bytes(file.read_bytes()[:-10])
    with EmbeddedLogReader(folder) as reader, pytest.raises(CorruptLog, match="file ends"):
        list(reader.read(0, 9))


@pytest.mark.parametrize(
    ("position", "message"),
    [(0, "magic"), (8, "format version"), (12, "header checksum"), (30, "header checksum")],
)
def test_a_damaged_segment_header_is_named(folder, open_writer, records, position, message):
    writer = open_writer()
    writer.append(records(2))
    writer.close()
    file = segment_of(folder)
    data = bytearray(file.read_bytes())
    data[position] ^= 2
    file.write_bytes(data)
    with pytest.raises(CorruptLog, match=f"{message}.*empty data.dir"):
        EmbeddedLogWriter(folder)
    with EmbeddedLogReader(folder) as reader, pytest.raises(CorruptLog, match=message):
        list(reader.read(0, 2))


def test_a_segment_under_a_wrong_name_and_an_empty_one_are_named(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(2))
    writer.close()
    shutil.copy(segment_of(folder), folder / f"{7:020d}.log")
    with pytest.raises(CorruptLog, match="header says base offset 0"):
        EmbeddedLogWriter(folder)
    (folder / f"{7:020d}.log").write_bytes(b"")
    with pytest.raises(CorruptLog, match="header cut at 0 bytes"):
        EmbeddedLogWriter(folder)


def test_a_crash_while_a_segment_is_created_leaves_nothing(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(2))
    writer.close()
    (folder / f"{2:020d}.tmp").write_bytes(b"helm")
    assert open_writer().end_offset() == 2
    assert not list(folder.glob("*.tmp"))


def test_a_log_copied_without_its_head_can_be_read(folder, open_writer, records, tmp_path):
    writer = open_writer(segment_bytes=200)
    writer.append(records(2))
    writer.append(records(2, start=2))
    writer.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.glob("*.log"):
        shutil.copy(file, copy)
    assert keys_of(copy) == [f"topic-{n}" for n in range(4)]


def test_a_folder_without_a_log_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(LogError, match="holds no log segments"):
            EmbeddedLogReader(folder)


@pytest.mark.parametrize("error", [CorruptLog("f", 1, 2, "why"), OffsetOutOfRange(1, 2, 3)])
def test_errors_travel_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copy), vars(copy)) == (str(error), vars(error))
