"""The embedded log's only writer: what many threads append is made durable by one fsync a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from checkpoints.durable import fsync_folder
from streaming.log.api import AppendFailed, NewRecord
from streaming.log.embedded_format import (
    HARD_RECORD_BYTES_MAX,
    Body,
    CorruptLog,
    encode_body,
    list_segments,
    pack_record,
    segment_name,
)
from streaming.log.embedded_head import Head
from streaming.log.embedded_recovery import Tail, find_tail
from streaming.log.embedded_segment import SegmentWriter, create_segment, let_go_of_cache
from streaming.log.group_commit import Append, GroupCommit, fail, time_of
from streaming.log.writer_lock import WriterLock
from streaming.process.wall_clock import wall_clock_ms

SEGMENT_BYTES = 64 * 1024 * 1024
RECORD_BYTES_MAX = HARD_RECORD_BYTES_MAX
"""A decision about a million partitions takes 68 MB."""
_WITHOUT_IT = (
    "start with an empty data.dir: the cluster is then loaded again, committed offsets are in"
    " __consumer_offsets"
)


class EmbeddedLogWriter:
    """The one writer of a folder of segments (a `LogWriter`).

    `clock` gives milliseconds and may jump: a record's time is never before that of the record
    ahead of it, across restarts too. `segment_bytes` is where a new segment begins (a segment is
    larger only by one group), `record_bytes_max` what a single record may take. `first_offset` is
    that of the first record of a new log; one that is there keeps its own. `without_it` is what can
    be done when the log is damaged and no copy of it is there.

    Raises:
        LogLocked: another process or object writes this folder.
        CorruptLog: what was durable is damaged in the last segment.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        clock: Callable[[], int] = wall_clock_ms,
        segment_bytes: int = SEGMENT_BYTES,
        record_bytes_max: int = RECORD_BYTES_MAX,
        first_offset: int = 0,
        without_it: str = _WITHOUT_IT,
    ) -> None:
        if not 0 < record_bytes_max <= HARD_RECORD_BYTES_MAX:
            allowed = f"1..{HARD_RECORD_BYTES_MAX}"
            raise ValueError(f"record_bytes_max={record_bytes_max} is not in {allowed}")
        self._folder = Path(folder)
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._lock = WriterLock(self._folder)
        try:
            self._open(first_offset, without_it)
        except BaseException:
            self._lock.close()
            raise
        self._groups = GroupCommit(
            str(self._folder),
            self._commit,
            lambda record: encode_body(record, record_bytes_max),
            lambda body: len(body.text_and_payload),
        )

    def _open(self, first_offset: int, without_it: str) -> None:
        for leftover in self._folder.glob("*.tmp"):
            leftover.unlink()
        if not (bases := list_segments(self._folder)):
            create_segment(self._folder, first_offset, 0)
            bases = [first_offset]
        self._head = Head(self._folder / "head", writable=True)
        file = self._folder / segment_name(bases[-1])
        let_go_of_cache(file)
        try:
            tail = find_tail(file, bases[-1], self._head.end_offset())
        except CorruptLog as found:
            reason = f"{found.reason}; restore the file, or {without_it}"
            raise CorruptLog(found.file, found.position, found.offset, reason) from found
        self._segment = SegmentWriter(file, tail.position)
        self._tail = tail
        self._segment.sync()
        fsync_folder(self._folder)
        self._head.publish(tail.next_offset)

    def append(self, records: Sequence[NewRecord]) -> range:
        return self.append_async(records).result()

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        return self._groups.submit(records)

    def start_offset(self) -> int:
        return list_segments(self._folder)[0]

    def end_offset(self) -> int:
        """One past the last durable record."""
        return self._tail.next_offset

    def last_time_ms(self) -> int:
        return self._tail.time_ms

    def truncate_before(self, offset: int) -> int:
        """Delete the segments that hold nothing at or after `offset`, nor the last record."""
        offset = min(offset, self.end_offset() - 1)
        bases = list_segments(self._folder)
        while len(bases) > 1 and bases[1] <= offset:
            (self._folder / segment_name(bases.pop(0))).unlink()
            # One by one and in order, so that a crash leaves no gap between segments.
            fsync_folder(self._folder)
        return bases[0]

    def close(self) -> None:
        if not self._groups.close():
            return
        self._segment.close()
        self._head.close()
        self._lock.close()

    def __enter__(self) -> EmbeddedLogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _commit(self, group: list[Append[Body]]) -> None:
        """Write, fsync, publish, tell: in this order."""
        try:
            data, ranges, tail = self._pack(group)
            if data:
                if self._segment.is_full(len(data), self._segment_bytes):
                    self._roll()
                self._segment.write(data)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            self._undo(group, error)
            return
        try:
            self._segment.sync()
        except OSError as error:
            # After a failed fsync the kernel may have dropped the pages: what the file holds is
            # unknown until it is read again.
            self._groups.give_up(group, error)
            return
        self._tail = Tail(self._segment.position, tail.next_offset, tail.time_ms)
        self._head.publish(tail.next_offset)
        for waiting, offsets in zip(group, ranges, strict=True):
            waiting.future.set_result(offsets)

    def _pack(self, group: list[Append[Body]]) -> tuple[bytes, list[range], Tail]:
        first = offset = self._tail.next_offset
        time_ms = self._tail.time_ms
        parts: list[bytes] = []
        ranges: list[range] = []
        for waiting in group:
            now_ms = self._clock()
            for body in waiting.records:
                time_ms = time_of(body.time_ms, now_ms, time_ms)
                parts.extend(pack_record(offset, time_ms, offset - first, body))
                offset += 1
            ranges.append(range(offset - len(waiting.records), offset))
        return b"".join(parts), ranges, Tail(self._tail.position, offset, time_ms)

    def _roll(self) -> None:
        file = create_segment(self._folder, self._tail.next_offset, self._tail.time_ms)
        try:
            following = SegmentWriter(file)
        except OSError:
            # Left behind, it would say that the segment before it ends here.
            file.unlink()
            raise
        full, self._segment = self._segment, following
        self._tail = Tail(self._segment.position, self._tail.next_offset, self._tail.time_ms)
        full.close()

    def _undo(self, group: list[Append[Body]], error: Exception) -> None:
        """Cut what a failed write left behind; the log stays usable when that works."""
        try:
            self._segment.cut(self._tail.position)
        except OSError as worse:
            self._groups.give_up(group, worse)
            return
        failed = AppendFailed(f"{self._folder}: nothing of this append was kept: {error}")
        failed.__cause__ = error
        fail(group, failed)
