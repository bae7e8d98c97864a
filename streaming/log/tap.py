"""Follows a log for a downstream consumer and shows its records as JSON lines."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator

import orjson

from state.errors import CorruptBlock
from streaming.log.api import LogReader, LogRecord

CANNOT_BE_OPENED = (CorruptBlock, LookupError, ValueError, TypeError)
"""What opening a payload of another format raises."""

OpenPayload = Callable[[LogRecord], object]
"""Makes a payload readable: JSON values or numpy arrays. Raises CorruptBlock, ValueError or
LookupError if it cannot.
"""


def follow(
    reader: LogReader, start_offset: int, stop: Callable[[], bool], poll_ms: int
) -> Iterator[LogRecord]:
    """Every record from `start_offset` on, and then each new one, until `stop()` says so.

    `stop` is asked before each record and each wait. To resume, start at the offset after the last
    record that was handled.

    Raises:
        OffsetOutOfRange: records from `start_offset` on are not retained any more, or it is
            beyond the end.
    """
    offset = start_offset
    while not stop():
        end = reader.end_offset()
        # Also with nothing new: a start beyond the end is an error, not a wait.
        for record in reader.read(offset, max(offset, end)):
            if stop():
                return
            yield record
        if offset == end:
            time.sleep(poll_ms / 1000)
        offset = end


def open_json(record: LogRecord) -> object:
    """The payload of an event: JSON."""
    return orjson.loads(record.payload)


def to_json_line(record: LogRecord, open_payload: OpenPayload = open_json) -> str:
    """One line: offset, time_ms, kind, key and either `payload` or `payload_base64`.

    A payload that cannot be opened is shown as base64, with the reason in `payload_error`.
    """
    line: dict[str, object] = {
        "offset": record.offset,
        "time_ms": record.time_ms,
        "kind": record.kind,
        "key": record.key,
    }
    try:
        return _dump({**line, "payload": open_payload(record)})
    except CANNOT_BE_OPENED as error:
        encoded = base64.b64encode(record.payload).decode("ascii")
        return _dump({**line, "payload_base64": encoded, "payload_error": why_not(error)})


def why_not(error: Exception) -> str:
    """Say why a payload cannot be opened: of a name or number that is not known, the text of the
    error is just that.
    """
    return repr(error) if isinstance(error, LookupError) else str(error)


def _dump(line: dict[str, object]) -> str:
    return orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY).decode()
