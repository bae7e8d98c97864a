"""Copies a log into another one, record by record and at the same offsets."""

from __future__ import annotations

from streaming.log.api import LogError, LogReader, LogRecord, LogWriter, NewRecord
from streaming.log.group_commit import GROUP_BYTES_MAX

_AT_ONCE = 1_000


def next_records(reader: LogReader, first: int, end: int) -> list[LogRecord]:
    """Return what is copied at once of the records from an offset on: at least one, and no more
    than one group of a writer is.
    """
    found: list[LogRecord] = []
    size_bytes = 0
    for one in reader.read(first, min(end, first + _AT_ONCE)):
        found.append(one)
        size_bytes += len(one.payload)
        if size_bytes >= GROUP_BYTES_MAX:
            break
    return found


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
        found = next_records(reader, first, end)
        writer.append([NewRecord(one.kind, one.key, one.payload, one.time_ms) for one in found])
        first += len(found)
    return copied
