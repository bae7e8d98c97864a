"""One segment as a file being read: finds an offset by a sparse index, reads in large chunks."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_right, insort
from collections.abc import Iterator
from pathlib import Path

from checkpoints.durable import naming
from streaming.log.embedded_format import (
    HEADER_BYTES,
    BadRecord,
    CorruptLog,
    parse_header,
    parse_records,
    record_bytes,
    skip_records,
)
from streaming.log.event_rows import EventRow

_CHUNK_BYTES = 256 * 1024  # what a read learns the place of, so it bounds how far a seek hops
_FIRST_CHUNK_BYTES = 64 * 1024
_INDEX_STRIDE_BYTES = 64 * 1024


class SegmentReader:
    """An open segment and the places of some of its offsets, learnt from earlier reads.

    Raises:
        FileNotFoundError: retention has deleted the segment.
        CorruptLog: its header is damaged.
        OSError: it cannot be read; it names the file, as those of reads do.
    """

    def __init__(self, file: Path, base_offset: int) -> None:
        self._file = file
        self._fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        # Not closed while an iterator still reads it, though retention has deleted the file.
        self.close = weakref.finalize(self, os.close, self._fd)
        parse_header(self._bytes(HEADER_BYTES, 0), file, base_offset)
        self._index = [(base_offset, HEADER_BYTES)]
        # Where the last read ended: the next one usually goes on there.
        self._recent = self._index[0]

    def read(self, first: int, until: int) -> Iterator[list[EventRow]]:
        """The records `first .. until - 1`, checked, some at a time.

        Raises:
            CorruptLog: a record on the way is damaged or missing; those before it were given.
        """
        offset, position = self._nearest(first)
        want_bytes = _FIRST_CHUNK_BYTES
        while offset < until:
            data = memoryview(self._bytes(want_bytes, position))
            rows: list[EventRow] = []
            bad: BadRecord | None = None
            at, after = 0, offset
            try:
                at, after = skip_records(data, 0, offset, first)
                self._learn(after, position + at)
                if after >= first:
                    at, after = parse_records(data, at, after, until, rows)
            except BadRecord as found:
                bad = found
            if rows:
                yield rows
            if bad:
                raise CorruptLog(str(self._file), position + bad.at, bad.offset, bad.reason)
            if after < until and len(data) < want_bytes:
                reason = f"file ends, {until - after} more records were durable"
                raise CorruptLog(str(self._file), position + at, after, reason)
            offset, position = after, position + at
            self._learn(offset, position)
            # A record larger than a chunk is fetched whole.
            want_bytes = max(_CHUNK_BYTES, record_bytes(data, at))
        self._recent = (offset, position)

    def _bytes(self, most: int, position: int) -> bytes:
        with naming(self._file):
            return os.pread(self._fd, most, position)

    def _nearest(self, offset: int) -> tuple[int, int]:
        """The last known (offset, position) at or before `offset`."""
        known = self._index[bisect_right(self._index, (offset + 1,)) - 1]
        recent = self._recent
        return recent if known[0] < recent[0] <= offset else known

    def _learn(self, offset: int, position: int) -> None:
        place = bisect_right(self._index, (offset, position))
        before = self._index[place - 1]
        if position - before[1] < _INDEX_STRIDE_BYTES:
            return
        if place == len(self._index) or self._index[place][1] - position >= _INDEX_STRIDE_BYTES:
            insort(self._index, (offset, position))
