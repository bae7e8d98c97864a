"""What every log offers: the record types, the reader's and the writer's duties, the errors.

The embedded log (`streaming.log.embedded`) is one implementation, a Kafka topic with one partition
(`streaming.log.kafka_reader`, `kafka_writer`) the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from state.events import Event


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of a log. Offsets are dense: the record after `offset` has `offset + 1`."""

    offset: int
    time_ms: int
    kind: str
    key: str
    payload: bytes

    def as_event(self) -> Event:
        """Return a record of an event log as machines take it."""
        return Event(self.offset, self.time_ms, self.kind, self.key, self.payload)


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to append.

    `time_ms` is left out where the log's own clock decides; it is given where a log carries the
    time of another log's record (decisions carry the time of their event), and then kept as it is.
    """

    kind: str
    key: str
    payload: bytes
    time_ms: int | None = None


class LogError(Exception):
    """Anything a log refuses or cannot do."""


class OffsetOutOfRange(LogError):
    """A read outside of the retained range `[start_offset, end_offset)`."""

    def __init__(self, offset: int, start_offset: int, end_offset: int) -> None:
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset
        super().__init__(
            f"offset {offset} is outside of the retained range [{start_offset}, {end_offset})"
        )

    def __reduce__(self) -> tuple[type, tuple[int, int, int]]:
        return type(self), (self.offset, self.start_offset, self.end_offset)


class RecordRefused(LogError):
    """A record that can never be appended: too large, or a field of the wrong size."""


class LogClosed(LogError):
    """An append to a writer that was closed, or that gave up after a failed fsync.

    In the second case it is unknown whether the records are in the log: open it and look.
    """


class AppendFailed(LogError):
    """The storage refused the bytes: nothing of this append is durable, the log is as before."""


class LogUnavailable(LogError):
    """The storage, a cluster of its own, did not answer in time; it may be back soon."""


class LogReader(Protocol):
    """Reads a log, from any process."""

    def start_offset(self) -> int:
        """The first offset still retained (equals `end_offset()` for an empty log)."""

    def end_offset(self) -> int:
        """One past the last durable record. Cheap enough to poll; never goes back."""

    def read(self, start: int, end: int) -> Iterator[LogRecord]:
        """The records `start .. end - 1` in offset order, the same each time.

        Raises:
            OffsetOutOfRange: unless start_offset() <= start <= end <= end_offset().
        """


class LogWriter(Protocol):
    """The one writer of a log. Any number of threads may call it at the same time."""

    def start_offset(self) -> int:
        """The first offset still retained."""

    def end_offset(self) -> int:
        """One past the last durable record."""

    def last_time_ms(self) -> int:
        """The time of the last durable record; 0 when there never was one."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append in order and return their offsets once all of them are durable.

        The records of one call get neighbouring offsets. A crash during the call may leave a
        prefix of them in the log; a return means all are there whatever dies afterwards.

        Raises:
            RecordRefused: a record cannot be stored; none of the call was appended.
            AppendFailed: the storage failed; none of the call was appended.
            LogClosed: the writer was closed or has given up.
        """

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """As `append`, without waiting: the future has the offsets or the error.

        Order of calls is order of offsets. A future cancelled before its turn appends nothing.
        """

    def truncate_before(self, offset: int) -> int:
        """Let go of what is before `offset`, but never of the last record.

        Returns the new start offset, which may be earlier than `offset`.
        """

    def close(self) -> None:
        """Finish what was appended, then let go of the log. May be called twice."""
