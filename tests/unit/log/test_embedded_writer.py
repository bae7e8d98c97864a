"""Appending: order, durability, time, limits, failures of the storage, one writer only."""

from __future__ import annotations

import errno
import os
import re
import resource
import threading
from collections.abc import Iterator

import pytest

from streaming.log import embedded_segment, embedded_writer
from streaming.log.api import AppendFailed, LogClosed, NewRecord, OffsetOutOfRange, RecordRefused
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter, LogLocked
from streaming.log.embedded_format import list_segments
from streaming.log.embedded_head import Head
from streaming.log.embedded_recovery import find_tail

THREADS = 16
APPENDS = 40


def read_all(folder):
    with EmbeddedLogReader(folder) as reader:
        return list(reader.read(reader.start_offset(), reader.end_offset()))


def test_offsets_are_dense_and_what_was_appended_is_read(folder, open_writer, records):
    writer = open_writer(clock=lambda: 7)
    new = records(5)
    assert writer.append(new[:3]) == range(3)
    assert writer.append([]) == range(3, 3)
    assert writer.append(new[3:]) == range(3, 5)
    read = read_all(folder)
    assert [record.offset for record in read] == list(range(5))
    assert [(r.kind, r.key, r.payload) for r in read] == [(n.kind, n.key, n.payload) for n in new]
    assert {record.time_ms for record in read} == {7}


def test_many_threads_get_one_total_order(folder, open_writer):
    writer = open_writer(segment_bytes=20_000)
    got: list[tuple[range, list[NewRecord]]] = []
    ends_seen: list[bool] = []

    def work(thread: int) -> None:
        with EmbeddedLogReader(folder) as reader:
            for number in range(APPENDS):
                new = [NewRecord("k", f"{thread}", b"%d.%d" % (number, i)) for i in range(2)]
                offsets = writer.append(new)
                ends_seen.append(reader.end_offset() >= offsets.stop)
                got.append((offsets, new))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(got) == THREADS * APPENDS
    assert all(ends_seen), "an acknowledged record was not yet visible to readers"
    read = read_all(folder)
    assert [record.offset for record in read] == list(range(2 * THREADS * APPENDS))
    for offsets, new in got:
        assert [read[offset].payload for offset in offsets] == [record.payload for record in new]
    for thread in range(THREADS):
        mine = [record.payload for record in read if record.key == f"{thread}"]
        assert mine == [b"%d.%d" % (n, i) for n in range(APPENDS) for i in range(2)]
    assert len(list_segments(folder)) > 1


def test_appends_that_wait_share_one_fsync(open_writer, records, monkeypatch):
    writer = open_writer()
    syncs = []
    first_sync_may_end = threading.Event()

    def slow_sync(fd: int) -> None:
        syncs.append(fd)
        assert first_sync_may_end.wait(30)

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    futures = [writer.append_async([record]) for record in records(50)]
    first_sync_may_end.set()
    assert [future.result(30) for future in futures] == [range(n, n + 1) for n in range(50)]
    assert len(syncs) <= 2


def test_nothing_is_visible_before_its_fsync(folder, open_writer, records, monkeypatch):
    writer = open_writer()
    writer.append(records(2))
    in_sync, go_on = threading.Event(), threading.Event()

    def slow_sync(_fd: int) -> None:
        in_sync.set()
        assert go_on.wait(30)

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    future = writer.append_async(records(1, start=2))
    assert in_sync.wait(30)
    with EmbeddedLogReader(folder) as reader:
        assert reader.end_offset() == 2
        assert not future.done()
        with pytest.raises(OffsetOutOfRange):
            reader.read(0, 3)
        go_on.set()
        assert future.result(30) == range(2, 3)
        assert reader.end_offset() == 3


def test_time_never_goes_back_with_a_clock_that_does(folder, open_writer, records):
    clock = iter([100, 50, 120, 110]).__next__
    writer = open_writer(clock=clock)
    for record in records(4):
        writer.append([record])
    writer.close()
    open_writer(clock=lambda: 1).append(records(1))
    assert [record.time_ms for record in read_all(folder)] == [100, 100, 120, 120, 120]


def test_time_survives_a_restart_after_everything_else_was_truncated(folder, open_writer, records):
    writer = open_writer(clock=lambda: 900, segment_bytes=1)
    writer.append(records(1))
    writer.append(records(1))
    writer.truncate_before(2)
    writer.close()
    open_writer(clock=lambda: 5).append(records(1))
    assert [record.time_ms for record in read_all(folder)] == [900, 900]


def test_a_given_time_is_kept(folder, open_writer):
    writer = open_writer(clock=lambda: 10)
    writer.append([NewRecord("k", "", b"", 3), NewRecord("k", "", b""), NewRecord("k", "", b"", 4)])
    assert [record.time_ms for record in read_all(folder)] == [3, 10, 4]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (NewRecord("k", "a-topic", b"x" * 200), r"key='a-topic' of 240 bytes .* limit of 200"),
        (NewRecord("k" * 70_000, "", b""), "kind of 70000 bytes is larger than 65535"),
        (NewRecord("k", "y" * 70_000, b""), "key of 70000 bytes is larger than 65535"),
        (NewRecord("k", "", b"", -1), "time_ms=-1"),
    ],
)
def test_a_record_that_cannot_be_stored_is_refused_alone(
    folder, open_writer, records, record, message
):
    writer = open_writer(record_bytes_max=200)
    with pytest.raises(RecordRefused, match=message):
        writer.append([*records(1), record])
    assert writer.append(records(1)) == range(0, 1)
    assert len(read_all(folder)) == 1


def test_the_largest_record_and_empty_fields_are_stored(folder, open_writer):
    writer = open_writer(record_bytes_max=3_000_000)
    large = NewRecord("k", "ключ", os.urandom(3_000_000 - 32 - 1 - 8))
    writer.append([NewRecord("", "", b""), large, NewRecord("", "", b"")])
    read = read_all(folder)
    assert [r.payload for r in read] == [b"", large.payload, b""]
    assert [r.key for r in read] == ["", "ключ", ""]


def test_a_second_writer_is_refused_with_folder_and_pid(folder, open_writer):
    open_writer()
    with pytest.raises(
        LogLocked, match=re.escape(f"{folder} is already written by process {os.getpid()}")
    ):
        EmbeddedLogWriter(folder)


def test_a_closed_writer_refuses_and_lets_go_of_the_lock(open_writer, records):
    writer = open_writer()
    writer.close()
    writer.close()
    with pytest.raises(LogClosed, match="closed"):
        writer.append(records(1))
    assert open_writer().append(records(1)) == range(1)


def test_close_finishes_what_was_appended(folder, open_writer, records):
    writer = open_writer()
    futures = [writer.append_async([record]) for record in records(100)]
    writer.close()
    assert all(future.done() for future in futures)
    assert len(read_all(folder)) == 100


def test_a_cancelled_append_takes_no_offset(folder, open_writer, records, monkeypatch):
    writer = open_writer()
    go_on = threading.Event()
    in_sync = threading.Event()

    def slow_sync(_fd: int) -> None:
        in_sync.set()
        assert go_on.wait(30)

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    first = writer.append_async(records(1, start=0))
    assert in_sync.wait(30)
    cancelled = writer.append_async(records(1, start=1))
    last = writer.append_async(records(1, start=2))
    assert cancelled.cancel()
    assert not first.cancel()
    go_on.set()
    assert last.result(30) == range(1, 2)
    assert [record.key for record in read_all(folder)] == ["topic-0", "topic-2"]


def test_a_full_disk_fails_the_append_and_the_log_goes_on(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(3))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # the write stops in the middle
    try:
        with pytest.raises(AppendFailed, match="File too large") as failed:
            writer.append([NewRecord("k", "", b"x" * 10_000)])
        assert isinstance(failed.value.__cause__, OSError)
        assert writer.append(records(1, start=3)) == range(3, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert writer.append(records(1, start=4)) == range(4, 5)
    writer.close()
    assert open_writer().end_offset() == 5
    assert [record.key for record in read_all(folder)] == [f"topic-{n}" for n in range(5)]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_log_that_has_no_room_to_be_opened_names_the_file(folder, open_writer, is_new):
    if not is_new:
        open_writer().close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match="File too large") as failed:
            EmbeddedLogWriter(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(failed.value.filename) == str(folder / "lock")


def test_a_head_has_its_place_on_the_disk_before_it_is_written_through_a_mapping(
    folder, open_writer, monkeypatch
):
    """On a full disk such a write would end the process by a signal."""
    open_writer().close()
    (folder / "head").unlink()

    def no_space(_fd: int, _data: bytes, _at: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_space)
    with pytest.raises(OSError, match="No space left") as failed:
        Head(folder / "head", writable=True)
    assert str(failed.value.filename) == str(folder / "head")


def test_a_segment_that_cannot_be_created_fails_the_append_only(
    folder, open_writer, records, monkeypatch
):
    writer = open_writer(segment_bytes=290)
    writer.append(records(3))

    def no_space(_folder: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(embedded_segment, "fsync_folder", no_space)
        with pytest.raises(AppendFailed, match="No space left"):
            writer.append(records(3, start=3))
    assert writer.append(records(1, start=3)) == range(3, 4)  # still fits into the old segment
    assert list_segments(folder) == [0]
    assert writer.append(records(3, start=4)) == range(4, 7)
    writer.close()
    open_writer().close()
    assert [record.key for record in read_all(folder)] == [f"topic-{n}" for n in range(7)]


def test_the_last_record_is_kept_when_the_segment_after_it_stayed_empty(
    folder, open_writer, records, monkeypatch
):
    writer = open_writer(segment_bytes=200, clock=lambda: 900)
    writer.append(records(3))

    def no_space(_segment: object, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(embedded_segment.SegmentWriter, "write", no_space)
        with pytest.raises(AppendFailed, match="No space left"):
            writer.append(records(3, start=3))
    assert list_segments(folder) == [0, 3]
    assert writer.truncate_before(3) == 0
    writer.close()
    again = open_writer(clock=lambda: 1)
    assert again.append(records(1, start=3)) == range(3, 4)
    assert again.truncate_before(4) == 3
    assert [(record.key, record.time_ms) for record in read_all(folder)] == [("topic-3", 900)]


def test_a_failed_fsync_makes_the_writer_give_up_until_it_is_opened_again(
    folder, open_writer, records, monkeypatch
):
    writer = open_writer()
    writer.append(records(2))

    def broken_sync(_fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", broken_sync)
        with pytest.raises(LogClosed, match=r"gave up.*Input/output error"):
            writer.append(records(1, start=2))
    with pytest.raises(LogClosed, match="open the log again"):
        writer.append(records(1, start=2))
    with EmbeddedLogReader(folder) as reader:
        assert reader.end_offset() == 2
    writer.close()
    again = open_writer()
    assert again.append(records(1, start=9)).start in {2, 3}  # what became of it was unknown
    assert [record.key for record in read_all(folder)][:2] == ["topic-0", "topic-1"]


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the page cache cannot be let go of")
def test_a_segment_is_read_from_the_disk_when_it_is_opened_again(
    folder, open_writer, records, monkeypatch
):
    """After a failed fsync the kernel holds as clean what it could not write."""
    with open_writer() as writer:
        writer.append(records(2))
    done = []
    sync, advise, find = os.fdatasync, os.posix_fadvise, find_tail

    def noted(what, call):
        def called(*arguments):
            done.append(what)
            return call(*arguments)

        return called

    monkeypatch.setattr(os, "fdatasync", noted("sync", sync))
    monkeypatch.setattr(os, "posix_fadvise", noted("advise", advise))
    monkeypatch.setattr(embedded_writer, "find_tail", noted("find", find))
    open_writer()
    assert done[:3] == ["sync", "advise", "find"]


def test_a_clock_that_fails_fails_the_append_only(open_writer, records):
    answers: Iterator[Exception | int] = iter([ValueError("clock is broken"), 5])

    def clock() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    writer = open_writer(clock=clock)
    with pytest.raises(AppendFailed, match="clock is broken"):
        writer.append(records(1))
    assert writer.append(records(1)) == range(1)


def test_retention_deletes_whole_segments_and_keeps_the_last_record(folder, open_writer, records):
    writer = open_writer(segment_bytes=200)
    for number in range(12):
        writer.append(records(1, start=number))
    bases = list_segments(folder)
    assert len(bases) > 3
    with EmbeddedLogReader(folder) as reader:
        assert next(reader.read(0, 1)).key == "topic-0"
        assert writer.truncate_before(bases[2] + 1) == bases[2]
        assert reader.start_offset() == bases[2]
        with pytest.raises(OffsetOutOfRange) as error:
            reader.read(0, 12)
        assert (error.value.offset, error.value.start_offset, error.value.end_offset) == (
            0,
            bases[2],
            12,
        )
        assert [r.offset for r in reader.read(bases[2], 12)] == list(range(bases[2], 12))
    assert writer.truncate_before(1000) == bases[-1]
    writer.close()
    assert open_writer().append(records(1)) == range(12, 13)
    assert [record.offset for record in read_all(folder)] == list(range(bases[-1], 13))
