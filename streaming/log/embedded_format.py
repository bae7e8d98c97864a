"""The bytes of a segment: its header, its records, and how both are checked.

The layout is specified in docs/event-log.md; a change here is a change there and a new version.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from streaming.log.api import LogError, NewRecord, RecordRefused
from streaming.log.event_rows import EventRow

FORMAT_VERSION = 1
MAGIC = b"helmlog\n"
HARD_RECORD_BYTES_MAX = 256 * 1024 * 1024
"""No version 1 record is larger than this, whatever the writer's own limit."""

_HEADER = struct.Struct("<8sIqqI")  # magic, version, base_offset, base_time_ms, crc32 of these
_HEADER_CHECKED = struct.Struct("<8sIqq")
HEADER_BYTES = _HEADER.size

_RECORD = struct.Struct("<IIqqIHH")  # crc32, length, offset, time_ms, group_index, kind, key bytes
RECORD_HEADER_BYTES = _RECORD.size
_RECORD_CHECKED = struct.Struct("<IqqIHH")
_CRC = struct.Struct("<I")
_CRC_BYTES = _CRC.size
_FRAME_BYTES = 8  # crc32 and length; length counts what follows them
_LENGTH_MIN = RECORD_HEADER_BYTES - _FRAME_BYTES
_TEXT_BYTES_MAX = 0xFFFF
_TIME_MS_MAX = 2**63 - 1
_SEGMENT_NAME = re.compile(r"\d{20}\.log")


class CorruptLog(LogError):
    """Bytes that were durable once are not what was written. Names the place and the reason."""

    def __init__(self, file: str, position: int, offset: int, reason: str) -> None:
        self.file = file
        self.position = position
        self.offset = offset
        self.reason = reason
        super().__init__(f"{file}: at byte {position}, offset {offset}: {reason}")

    def __reduce__(self) -> tuple[type, tuple[str, int, int, str]]:
        return type(self), (self.file, self.position, self.offset, self.reason)


class BadRecord(Exception):
    """A whole record in a buffer is not valid; the caller knows which file it came from."""

    def __init__(self, at: int, offset: int, reason: str) -> None:
        self.at = at
        self.offset = offset
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """`base_time_ms` is the time of the record before the segment: time survives retention."""

    base_offset: int
    base_time_ms: int


@dataclass(frozen=True, slots=True)
class Body:
    """A record in stored form, all but what the writer assigns: offset, time, group."""

    kind_bytes: int
    key_bytes: int
    text_and_payload: bytes
    time_ms: int | None


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def list_segments(folder: Path) -> list[int]:
    """The base offsets of the segments in a folder, ascending."""
    names = (path.name for path in folder.iterdir())
    return sorted(int(name[:20]) for name in names if _SEGMENT_NAME.fullmatch(name))


def pack_header(header: SegmentHeader) -> bytes:
    checked = _HEADER_CHECKED.pack(MAGIC, FORMAT_VERSION, header.base_offset, header.base_time_ms)
    return checked + _CRC.pack(zlib.crc32(checked))


def parse_header(data: bytes, file: Path, base_offset: int) -> SegmentHeader:
    """Check and open a segment's first HEADER_BYTES bytes.

    Raises:
        CorruptLog: the magic, version, checksum or base offset is not what it must be.
    """
    if len(data) < HEADER_BYTES:
        raise CorruptLog(str(file), 0, base_offset, f"segment header cut at {len(data)} bytes")
    magic, version, offset, time_ms, crc = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise CorruptLog(str(file), 0, base_offset, f"not a log segment: magic {magic!r}")
    if version != FORMAT_VERSION:
        reason = f"format version {version}, this reader knows {FORMAT_VERSION}"
        raise CorruptLog(str(file), 0, base_offset, reason)
    if crc != zlib.crc32(data[: _HEADER_CHECKED.size]):
        raise CorruptLog(str(file), 0, base_offset, "segment header checksum differs")
    if offset != base_offset:
        raise CorruptLog(str(file), 0, base_offset, f"header says base offset {offset}")
    return SegmentHeader(offset, time_ms)


def checked_texts(record: NewRecord, record_bytes_max: int) -> tuple[bytes, bytes]:
    """Return kind and key as any log stores them.

    Raises:
        RecordRefused: the record or one of its parts is larger than allowed, or its time is not
            0 .. 2**63 - 1.
    """
    kind, key = record.kind.encode(), record.key.encode()
    for name, text in (("kind", kind), ("key", key)):
        if len(text) > _TEXT_BYTES_MAX:
            raise RecordRefused(
                f"{name} of {len(text)} bytes is larger than {_TEXT_BYTES_MAX}: {text[:40]!r}..."
            )
    if record.time_ms is not None and not 0 <= record.time_ms <= _TIME_MS_MAX:
        raise RecordRefused(f"time_ms={record.time_ms} is not in 0..{_TIME_MS_MAX}")
    size = RECORD_HEADER_BYTES + len(kind) + len(key) + len(record.payload)
    if size > record_bytes_max:
        raise RecordRefused(
            f"record kind={record.kind!r} key={record.key[:80]!r} of {size} bytes "
            f"is larger than the limit of {record_bytes_max}"
        )
    return kind, key


def encode_body(record: NewRecord, record_bytes_max: int) -> Body:
    """Check a record and bring it into its stored form; done by the caller's thread; raises as
    `checked_texts`.
    """
    kind, key = checked_texts(record, record_bytes_max)
    text_and_payload = b"".join((kind, key, record.payload))
    return Body(len(kind), len(key), text_and_payload, record.time_ms)


def pack_record(offset: int, time_ms: int, group_index: int, body: Body) -> tuple[bytes, bytes]:
    """One record in two parts: `group_index` is its place among those of the same fsync."""
    stored = body.text_and_payload
    checked = _RECORD_CHECKED.pack(
        _LENGTH_MIN + len(stored), offset, time_ms, group_index, body.kind_bytes, body.key_bytes
    )
    return _CRC.pack(zlib.crc32(stored, zlib.crc32(checked))) + checked, stored


def skip_records(data: memoryview, at: int, offset: int, until: int) -> tuple[int, int]:
    """Hop over whole records to the one with offset `until`, without checking their content.

    Returns the position and offset of the first record not hopped over.

    Raises:
        BadRecord: a frame that cannot be hopped over.
    """
    size = len(data)
    unpack = _RECORD.unpack_from
    while offset < until and at + RECORD_HEADER_BYTES <= size:
        _, length, found, _, _, _, _ = unpack(data, at)
        if found != offset or not _LENGTH_MIN <= length <= HARD_RECORD_BYTES_MAX:
            raise BadRecord(at, offset, f"frame says offset {found}, length {length}")
        if at + _FRAME_BYTES + length > size:
            break
        at += _FRAME_BYTES + length
        offset += 1
    return at, offset


def parse_records(
    data: memoryview, at: int, offset: int, until: int, rows: list[EventRow]
) -> tuple[int, int]:
    """Check the whole records from `at` on, up to offset `until`, and append them to `rows`.

    Returns the position and offset of the first record not parsed: `until`, or one of which
    `data` holds only a part.

    Raises:
        BadRecord: a record whose frame, offset or checksum is wrong; `rows` has those before it.
    """
    size = len(data)
    unpack, crc32 = _RECORD.unpack_from, zlib.crc32
    while offset < until and at + RECORD_HEADER_BYTES <= size:
        crc, length, found, time_ms, _, kind_bytes, key_bytes = unpack(data, at)
        if not _LENGTH_MIN + kind_bytes + key_bytes <= length <= HARD_RECORD_BYTES_MAX:
            raise BadRecord(at, offset, f"impossible record length {length}")
        end = at + _FRAME_BYTES + length
        if end > size:
            break
        if crc32(data[at + _CRC_BYTES : end]) != crc:
            raise BadRecord(at, offset, "record checksum differs")
        if found != offset:
            raise BadRecord(at, offset, f"record says offset {found}")
        key_at = at + RECORD_HEADER_BYTES + kind_bytes
        payload_at = key_at + key_bytes
        kind = str(data[at + RECORD_HEADER_BYTES : key_at], "utf-8")
        key = str(data[key_at:payload_at], "utf-8")
        rows.append((offset, time_ms, kind, key, bytes(data[payload_at:end])))
        at = end
        offset += 1
    return at, offset


def record_bytes(data: memoryview, at: int) -> int:
    """How many bytes the record at `at` claims to have; RECORD_HEADER_BYTES if that is cut off."""
    if at + RECORD_HEADER_BYTES > len(data):
        return RECORD_HEADER_BYTES
    length: int = _RECORD.unpack_from(data, at)[1]
    return _FRAME_BYTES + length


def group_start(data: memoryview, at: int) -> int | None:
    """The first offset of the group of the record at `at`; None unless a valid record is there.

    Everything before that offset was durable when the record was written.
    """
    if at + RECORD_HEADER_BYTES > len(data):
        return None
    crc, length, offset, _, group_index, _, _ = _RECORD.unpack_from(data, at)
    end = at + _FRAME_BYTES + length
    if length < _LENGTH_MIN or end > len(data) or zlib.crc32(data[at + _CRC_BYTES : end]) != crc:
        return None
    return int(offset - group_index)
