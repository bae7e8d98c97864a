"""A log writer for records that have an id of their own: what is already in the log is dropped.

Spark runs an uncommitted batch again after a crash and the same decisions come out with the same
ids (event offset, ordinal); this is where the second copy ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.log.api import LogError, LogReader, LogRecord, LogWriter, NewRecord


@dataclass(frozen=True, slots=True, order=True)
class RecordId:
    """The event a record follows from, and its place among what that event caused."""

    event_offset: int
    ordinal: int

    def __str__(self) -> str:
        return f"{self.event_offset}:{self.ordinal}"


@dataclass(frozen=True, slots=True)
class IdentifiedRecord:
    """A record whose id becomes its key; `time_ms` is that of its event."""

    id: RecordId
    kind: str
    payload: bytes
    time_ms: int | None = None


def record_id(record: LogRecord) -> RecordId:
    """The id in the key of a stored record.

    Raises:
        LogError: the key is not "<event offset>:<ordinal>".
    """
    event_offset, separator, ordinal = record.key.partition(":")
    if not (separator and event_offset.isdecimal() and ordinal.isdecimal()):
        raise LogError(f"offset {record.offset}: key {record.key!r} is not an id like '17:0'")
    return RecordId(int(event_offset), int(ordinal))


class IdempotentLogWriter:
    """Appends records in id order and drops those at or below the last id in the log.

    `reader` reads the log that `writer` writes. For one thread: the sink of one query.
    """

    def __init__(self, writer: LogWriter, reader: LogReader) -> None:
        self._writer = writer
        self._last_id = _last_id(reader)

    @property
    def last_id(self) -> RecordId | None:
        """The highest id in the log; None while it is empty."""
        return self._last_id

    def append(self, records: Sequence[IdentifiedRecord]) -> range:
        """Append what is new and return its offsets, durable; an empty range if nothing is.

        Raises:
            ValueError: the ids of the call do not rise.
            LogError: as `LogWriter.append`; the same call can be made again after opening the log.
        """
        for before, after in pairwise(records):
            if before.id >= after.id:
                raise ValueError(f"id {after.id} comes after id {before.id}")
        last = self._last_id
        new = [record for record in records if last is None or record.id > last]
        if not new:
            return range(0)
        offsets = self._writer.append(
            [
                NewRecord(record.kind, str(record.id), record.payload, record.time_ms)
                for record in new
            ]
        )
        self._last_id = new[-1].id
        return offsets


def _last_id(reader: LogReader) -> RecordId | None:
    start, end = reader.start_offset(), reader.end_offset()
    if start == end:
        return None
    return record_id(next(iter(reader.read(end - 1, end))))
