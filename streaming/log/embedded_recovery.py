"""Finds the end of the last segment after any kind of stop: whole records stay, a torn tail goes.

A tail is torn when nothing says that it was durable. Two things can say so: the `head` file, and
any valid record of a later group (a group is written only after the one before it was fsynced).
Where one of them does, the bad record is corruption and nothing is cut.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.log.embedded_format import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    BadRecord,
    CorruptLog,
    group_start,
    parse_header,
    parse_records,
)
from streaming.log.event_rows import EventRow

_OFFSET_AT = 8
_PARSE_STEP = 4096
_DURABLE_LOST = (
    "records up to offset {durable_end} were durable and acknowledged (to accept the loss of these"
    " alone, delete the file 'head' in its folder)"
)


@dataclass(frozen=True, slots=True)
class Tail:
    """Where the next record goes: file position, offset, and the time it must not be before."""

    position: int
    next_offset: int
    time_ms: int


def find_tail(file: Path, base_offset: int, durable_end: int | None) -> Tail:
    """Check every record of the last segment and find where whole records end.

    `durable_end` is what the head file says, or None without one.

    Raises:
        CorruptLog: a record that was durable is bad or missing.
    """
    with file.open("rb") as opened:
        if file.stat().st_size < HEADER_BYTES:
            parse_header(opened.read(), file, base_offset)
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            data = memoryview(mapped)
            try:
                return _find_tail(data, file, base_offset, durable_end)
            finally:
                data.release()


def _find_tail(data: memoryview, file: Path, base_offset: int, durable_end: int | None) -> Tail:
    time_ms = parse_header(bytes(data[:HEADER_BYTES]), file, base_offset).base_time_ms
    at, offset, reason = HEADER_BYTES, base_offset, "file ends"
    rows: list[EventRow] = []
    try:
        while True:
            rows.clear()
            before = offset
            at, offset = parse_records(data, at, offset, offset + _PARSE_STEP, rows)
            if offset == before:
                break
            time_ms = rows[-1][1]
    except BadRecord as bad:
        at, offset, reason = bad.at, bad.offset, bad.reason
        time_ms = rows[-1][1] if rows else time_ms
    if (later := _later_group(data, at, offset)) is not None:
        why = f"a later record proves that everything before offset {later} was durable"
        raise CorruptLog(str(file), at, offset, f"bad record ({reason}), and {why}")
    if durable_end is not None and offset < durable_end:
        why = _DURABLE_LOST.format(durable_end=durable_end - 1)
        raise CorruptLog(str(file), at, offset, f"{reason}, but {why}")
    return Tail(at, offset, time_ms)


def _later_group(data: memoryview, at: int, offset: int) -> int | None:
    """The start of a group after `offset` found beyond the bad record at `at`, if there is any."""
    places = len(data) - at - RECORD_HEADER_BYTES
    if places <= 0:
        return None
    # Every byte position is looked at as if a record began there: the bad one's length is not
    # to be trusted, so the next record can be anywhere.
    offsets = np.ndarray((places,), "<i8", buffer=data, offset=at + 1 + _OFFSET_AT, strides=(1,))
    plausible = (offsets > offset) & (offsets <= offset + places // RECORD_HEADER_BYTES + 1)
    candidates = np.flatnonzero(plausible).tolist()
    del offsets
    for place in candidates:
        start = group_start(data, at + 1 + place)
        if start is not None and start > offset:
            return start
    return None
