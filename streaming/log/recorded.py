"""Opens a recorded log by where it is: a folder of segments, a file of JSON lines, a topic."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from streaming.errors import ConfigurationError, HelmstreamError
from streaming.log.api import LogError, LogReader, LogRecord
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.json_lines import JsonLinesReader
from streaming.log.location import URL_FORM, KafkaTopic, LogLocation
from streaming.log.writer_lock import LOCK_FILE
from streaming.process.polling import polls

_HEAD_TIMEOUT_S = 10.0
_HEAD_POLL_S = 0.1


class RecordedLog(LogReader, Protocol):
    """A log that is read and closed."""

    def close(self) -> None:
        """Let go of its files or connections."""


@runtime_checkable
class TimeIndexed(Protocol):
    """A log that finds times by itself."""

    def first_at(self, time_ms: int) -> int:
        """The offset of the first record of this time or later, the end when there is none."""


class NoRecordedLog(HelmstreamError):
    """What was given as a log is none."""


def log_folder(path: Path, name: str) -> Path:
    """Return the folder of the log `name` (events, decisions): `path` itself, or its folder of that
    name where `path` is a data folder.
    """
    inside = path / name
    return inside if inside.is_dir() else path


def open_log(where: LogLocation) -> RecordedLog:
    """Open a log's own folder, or a topic; raises LogError when it holds no log, and says what to
    do about a front's folder whose log is in a topic.
    """
    if isinstance(where, KafkaTopic):
        # Who has no topic does without this import.
        from streaming.log.kafka_reader import KafkaLogReader  # noqa: PLC0415

        return KafkaLogReader(where)
    try:
        return EmbeddedLogReader(where)
    except LogError as error:
        if not (where / LOCK_FILE).exists():
            raise
        raise LogError(
            f"{error}, only a lock; if the log is in a topic, set event.log.url as front and job"
            f" have it, or give the topic as the log: {URL_FORM}"
        ) from error


def open_if_made(where: LogLocation) -> RecordedLog | None:
    """As `open_log`; None for a folder in which the front has not made the log yet."""
    try:
        return open_log(where)
    except LogError:
        if isinstance(where, KafkaTopic):
            raise
        return None


def open_recorded(where: LogLocation, name: str = "events") -> RecordedLog:
    """Open a log: a data folder's of that name, a log's own folder, a file of JSON lines, a topic.

    Raises NoRecordedLog when nothing is there, LogError when what is there is not a log.
    """
    if isinstance(where, KafkaTopic):
        return open_log(where)
    if where.is_dir():
        return open_log(log_folder(where, name))
    if where.is_file():
        return JsonLinesReader(where)
    raise NoRecordedLog(
        f"{where}: no such log; allowed are a data folder, the folder of a log, "
        f"a file of JSON lines, or {URL_FORM}"
    )


def end_of(reader: LogReader, until: str | None) -> int:
    """Return the offset where to stop: what `--until` says, or the end of the log.

    until: an offset, or a time in ISO 8601 (UTC unless it says otherwise): the first record of that
    time or later is not read any more. Raises ConfigurationError when it is neither, or outside of
    the log.
    """
    if until is None:
        return reader.end_offset()
    if not until.isdecimal():
        return first_at(reader, time_ms_of("--until", until))
    start, end = reader.start_offset(), reader.end_offset()
    if not start <= int(until) <= end:
        raise ConfigurationError(f"--until {until}: allowed are offsets from {start} to {end}")
    return int(until)


def time_ms_of(option: str, text: str) -> int:
    """Return the milliseconds since the epoch of a time in ISO 8601, UTC unless it says otherwise.

    Raises ConfigurationError naming the option.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{option} {text!r}: allowed are an offset, or a time such as 2026-01-31T12:00:00Z"
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def first_at(reader: LogReader, time_ms: int) -> int:
    """Return the offset of the first retained record of this time or later; the end when there
    is none.
    """
    if isinstance(reader, TimeIndexed):
        return reader.first_at(time_ms)
    return first_where(reader, lambda record: record.time_ms >= time_ms)


def kept_from(reader: LogReader, time_ms: int) -> int:
    """Return from where on a log has to be kept so that no record of this time or later goes: of an
    embedded log the start of a segment, since whole ones are let go of.
    """
    if isinstance(reader, EmbeddedLogReader):
        return reader.segment_at(time_ms)
    return first_at(reader, time_ms)


def awaited_end(reader: LogReader, wanted: int) -> int:
    """Return the log's end, waiting a moment for it to be where it has to be: after a loss of power
    the log's head may be old until the front has opened it.
    """
    for _ in polls(_HEAD_TIMEOUT_S, _HEAD_POLL_S):
        if reader.end_offset() >= wanted:
            break
    return reader.end_offset()


def last_time_ms(reader: LogReader) -> int:
    """Return the time of the last record; 0 without one."""
    return time_before(reader, reader.start_offset(), reader.end_offset())


def time_before(reader: LogReader, start: int, end: int) -> int:
    """Return the time of the last record of a range of offsets; 0 when it is empty."""
    return next(iter(reader.read(end - 1, end))).time_ms if start < end else 0


def oldest_kept_ms(reader: LogReader, now_ms: int, retention_ms: int) -> int:
    """Return from which time on a log keeps its records. One that was written under a wrong clock
    ages by its own times, which never go back: nothing in it would grow old for as long as that
    clock was ahead.
    """
    return max(now_ms, last_time_ms(reader)) - retention_ms


def first_where(reader: LogReader, reached: Callable[[LogRecord], bool]) -> int:
    """Return the offset of the first retained record for which `reached` holds, as it does for all
    after it; the end when there is none.
    """
    low, high = reader.start_offset(), reader.end_offset()
    while low < high:
        middle = (low + high) // 2
        if reached(next(iter(reader.read(middle, middle + 1)))):
            high = middle
        else:
            low = middle + 1
    return low
