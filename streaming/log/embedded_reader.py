"""Reads an embedded log from any process, beside its writer."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from streaming.log.api import LogError, LogRecord, OffsetOutOfRange
from streaming.log.embedded_format import (
    HEADER_BYTES,
    list_segments,
    parse_header,
    segment_name,
)
from streaming.log.embedded_head import LOOK_EVERY_S, Head, open_head
from streaming.log.embedded_read_segment import SegmentReader
from streaming.log.embedded_recovery import find_tail
from streaming.log.event_rows import EventRow

_SEGMENTS_OPEN = 8


class EmbeddedLogReader:
    """Exact, repeatable reads of what is durable (a `LogReader`); safe to share between threads.

    Raises:
        LogError: the folder holds no log.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._head: Head | None = None
        self._end_without_head: int | None = None
        self._segments: dict[int, SegmentReader] = {}
        self._lock = threading.Lock()
        self.start_offset()

    def start_offset(self) -> int:
        return self._bases()[0]

    def end_offset(self) -> int:
        if self._head is None:
            self._head = open_head(self._folder / "head")
        end = self._head.end_offset() if self._head else None
        return self._end_by_scan() if end is None else end

    def wait_beyond(self, offset: int, timeout_s: float) -> int:
        """Return the end: once it is not `offset`, at the latest after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        end = self.end_offset()
        while end == offset and (left_s := deadline - time.monotonic()) > 0:
            if self._head is None:
                time.sleep(min(left_s, LOOK_EVERY_S))
            else:
                self._head.wait(offset, left_s)
            end = self.end_offset()
        return end

    def rest(self) -> None:
        """Do nothing: only who asks looks at the log."""

    def read(self, start: int, end: int) -> Iterator[LogRecord]:
        """As `LogReader.read`; the range is checked at once, records are read as they are taken.

        Raises:
            OffsetOutOfRange: the range is not retained.
            CorruptLog: a record of the range is damaged; those before it were given.
        """
        # The end is read before the segments are listed: a segment exists before its records do.
        chunks = self._chunks(start, end, self.end_offset())
        return (LogRecord(*row) for rows in chunks for row in rows)

    def event_rows(self, start: int, end: int) -> Iterator[list[EventRow]]:
        """The same range as plain rows, a chunk at a time; as `read` in what it raises when.

        Whoever asks has noted the range when it was durable. So `head` is not asked, which another
        machine may see as it was; a record that is not there is a CorruptLog.
        """
        return self._chunks(start, end, end)

    def segment_at(self, time_ms: int) -> int:
        """Return the first offset of the last segment before which all records are older: what is
        let go of when older ones are. Reads headers of segments only.

        Raises:
            CorruptLog: a segment's header is damaged.
        """
        bases = self._bases()
        return bases[bisect_left(bases, time_ms, lo=1, key=self._time_before_ms) - 1]

    def _time_before_ms(self, base: int) -> int:
        """Return the time of the record before a segment; -1 when retention has deleted it."""
        file = self._folder / segment_name(base)
        try:
            with file.open("rb") as opened:
                return parse_header(opened.read(HEADER_BYTES), file, base).base_time_ms
        except FileNotFoundError:
            return -1

    def close(self) -> None:
        with self._lock:
            for segment in self._segments.values():
                segment.close()
            self._segments.clear()
        if self._head:
            self._head.close()
            self._head = None

    def __enter__(self) -> EmbeddedLogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bases(self) -> list[int]:
        try:
            bases = list_segments(self._folder)
        except FileNotFoundError:
            bases = []
        if not bases:
            raise LogError(f"{self._folder} holds no log segments")
        return bases

    def _end_by_scan(self) -> int:
        """The end of a log whose head was never written or not copied with it."""
        if self._end_without_head is None:
            base = self._bases()[-1]
            tail = find_tail(self._folder / segment_name(base), base, None)
            self._end_without_head = tail.next_offset
        return self._end_without_head

    def _chunks(self, start: int, end: int, end_offset: int) -> Iterator[list[EventRow]]:
        """Check the range now; the iterator then reads it segment by segment."""
        bases = self._bases()
        for offset in (start, end):
            if not bases[0] <= offset <= end_offset:
                raise OffsetOutOfRange(offset, bases[0], max(end_offset, self.end_offset()))
        if start > end:
            raise ValueError(f"start {start} is after end {end}")
        self._forget_deleted(bases)
        return self._read_segments(start, end, bases)

    def _read_segments(self, start: int, end: int, bases: list[int]) -> Iterator[list[EventRow]]:
        for base, next_base in zip(bases, [*bases[1:], end], strict=True):
            first, until = max(start, base), min(end, next_base)
            if first < until:
                try:
                    segment = self._segment(base)
                except FileNotFoundError:
                    raise OffsetOutOfRange(first, self.start_offset(), self.end_offset()) from None
                yield from segment.read(first, until)

    def _segment(self, base: int) -> SegmentReader:
        with self._lock:
            segment = self._segments.pop(base, None)
            if segment is None:
                segment = SegmentReader(self._folder / segment_name(base), base)
            self._segments[base] = segment
            while len(self._segments) > _SEGMENTS_OPEN:  # an iterator may go on with its own
                del self._segments[next(iter(self._segments))]
            return segment

    def _forget_deleted(self, bases: list[int]) -> None:
        with self._lock:
            for base in self._segments.keys() - set(bases):
                del self._segments[base]
