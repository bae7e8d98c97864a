"""Copies a log into another one, record by record and at the same offsets."""

from __future__ import annotations

from streaming.log.api import LogError, LogReader, LogWriter, NewRecord

_AT_ONCE = 10_000


def copy_records(reader: LogReader, writer: LogWriter) -> int:
    """Append what the writer's log does not have yet, with offsets and times, and return how many
    records that were; a copy that was interrupted goes on.

    Raises LogError when the next offset of the writer's log is not one that the reader has.
    """
    first, end = writer.end_offset(), reader.end_offset()
    if not reader.start_offset() <= first <= end:
        raise LogError(
            f"the copy goes on at offset {first}, the log has {reader.start_offset()} to {end}:"
            " offsets would not be the same"
        )
    copied = end - first
    while first < end:
        until = min(end, first + _AT_ONCE)
        writer.append(
            [
                NewRecord(one.kind, one.key, one.payload, one.time_ms)
                for one in reader.read(first, until)
            ]
        )
        first = until
    return copied
