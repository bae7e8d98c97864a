"""A log as JSON lines: written exactly, and read back as the log it was.

docs/event-log.md describes the lines. A payload that is JSON in the form that orjson writes it is
shown as JSON, any other as base64, so that reading gives back the same bytes.
"""

from __future__ import annotations

import base64
import binascii
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import orjson

from streaming.errors import HelmstreamError
from streaming.log.api import LogError, LogRecord, OffsetOutOfRange
from streaming.log.tap import to_json_line


def open_exactly(record: LogRecord) -> object:
    """Return the payload as JSON; raises ValueError when writing it again would give other
    bytes.
    """
    opened = orjson.loads(record.payload)
    if orjson.dumps(opened) != record.payload:
        raise ValueError("the payload is JSON in another form than the one it is written in here")
    return opened


def write_json_lines(records: Iterable[LogRecord], out: IO[str]) -> int:
    """Write records as lines and return how many."""
    count = 0
    for record in records:
        out.write(to_json_line(record, open_exactly) + "\n")
        count += 1
    return count


def read_json_line(line: bytes) -> LogRecord:
    """Return the record of a line; raises LogError saying what does not fit."""
    try:
        fields = orjson.loads(line)
        payload = (
            base64.b64decode(fields["payload_base64"], validate=True)
            if "payload_base64" in fields
            else orjson.dumps(fields["payload"])
        )
        record = LogRecord(
            fields["offset"], fields["time_ms"], fields["kind"], fields["key"], payload
        )
    except KeyError as error:
        raise LogError(f"field {error.args[0]!r} is missing") from None
    except (TypeError, ValueError, binascii.Error) as error:
        raise LogError(f"not a record: {error}") from None
    numbers, texts = (record.offset, record.time_ms), (record.kind, record.key)
    if any(type(one) is not int or one < 0 for one in numbers):
        raise LogError("offset and time_ms must be whole numbers from 0 up")
    if any(type(one) is not str for one in texts):
        raise LogError("kind and key must be strings")
    return record


class CorruptLine(HelmstreamError, LogError):
    """A line of a file that is not the record that has to be there."""

    exit_code = 2


class JsonLinesReader:
    """A `LogReader` over a file of JSON lines with dense offsets.

    Raises:
        CorruptLine: a line is not a record, or its offset is not the one after the line before; it
            names the file and the line.
    """

    def __init__(self, path: Path) -> None:
        """Read the file once, to check it and to know where each record is."""
        self._path = path
        self._positions = array("Q")
        self._first = 0
        with path.open("rb") as file:
            position = 0
            for number, line in enumerate(file, start=1):
                if line.strip():
                    self._take(number, line, position)
                position += len(line)

    def _take(self, number: int, line: bytes, position: int) -> None:
        try:
            offset = read_json_line(line).offset
        except LogError as error:
            raise CorruptLine(f"{self._path} line {number}: {error}") from None
        if not self._positions:
            self._first = offset
        elif offset != self.end_offset():
            raise CorruptLine(
                f"{self._path} line {number}: offset {offset} follows {self.end_offset() - 1}, "
                "records must be dense"
            )
        self._positions.append(position)

    def start_offset(self) -> int:
        return self._first

    def end_offset(self) -> int:
        return self._first + len(self._positions)

    def read(self, start: int, end: int) -> Iterator[LogRecord]:
        """As `LogReader.read`."""
        for offset in (start, end):
            if not self.start_offset() <= offset <= self.end_offset():
                raise OffsetOutOfRange(offset, self.start_offset(), self.end_offset())
        return self._read(start, end)

    def _read(self, start: int, end: int) -> Iterator[LogRecord]:
        if start >= end:
            return
        with self._path.open("rb") as file:
            file.seek(self._positions[start - self._first])
            left = end - start
            for line in file:
                if line.strip():
                    yield read_json_line(line)
                    left -= 1
                if not left:
                    return

    def close(self) -> None:
        """Do nothing: the file is open only while it is read."""
