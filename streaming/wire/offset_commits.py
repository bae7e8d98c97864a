"""OffsetCommit read, and its answer written, without the schema codec: they are many and long.

Source: OffsetCommitRequest, OffsetCommitResponse and TxnOffsetCommitResponse of Kafka 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from streaming.wire.errors import MalformedFrame
from streaming.wire.primitives import array_length, empty_tags, string
from streaming.wire.schema_codec import Body

Errors: TypeAlias = Sequence[tuple[int, int]]
"""Partition and error code, of one topic."""

OffsetRow: TypeAlias = list[str | int]
"""Topic, partition, offset, leader epoch, metadata."""

_Read: TypeAlias = Callable[[bytes, int], tuple[str | None, int]]

FLEXIBLE_SINCE = 8
_INSTANCE_SINCE = 7
EPOCH_SINCE = 6
_RETENTION_UNTIL = 4
_NO_RETENTION = _NO_EPOCH = -1
_VARINT_BYTES_MAX = 5

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PARTITION = struct.Struct(">iq")
_PARTITION_EPOCH = struct.Struct(">iqi")
_ERROR = struct.Struct(">ih")
_ERROR_TAGS = struct.Struct(">ihx")
_UNREADABLE = (struct.error, IndexError, ValueError)


def decode_offset_commit(version: int, data: bytes, start: int = 0) -> Body:
    """Decode an OffsetCommit request of version 2 or newer at data[start:].

    Fields are named as in the schema, but for topics: [(name, number of partitions)], and offsets,
    which are those of all topics: [topic, partition, offset, leader epoch, metadata], "" for null.
    places: where in data each of them has its offset, and the leader epoch right behind it from
    version 6 on. Raises MalformedFrame.
    """
    try:
        body, end = _request(version, data, start)
    except _UNREADABLE as error:
        raise MalformedFrame(f"OffsetCommitRequest version {version}: {error}") from error
    if end != len(data):
        raise MalformedFrame(
            f"OffsetCommitRequest version {version} ends at byte {end} of {len(data)}"
        )
    return body


def _request(version: int, data: bytes, at: int) -> tuple[Body, int]:
    flexible = version >= FLEXIBLE_SINCE
    read = _compact_string if flexible else _plain_string
    body: Body = {"group_instance_id": None, "retention_time_ms": _NO_RETENTION}
    body["group_id"], at = _required(read, data, at)
    (body["generation_id_or_member_epoch"],) = _INT32.unpack_from(data, at)
    body["member_id"], at = _required(read, data, at + _INT32.size)
    if version >= _INSTANCE_SINCE:
        body["group_instance_id"], at = read(data, at)
    if version <= _RETENTION_UNTIL:
        (body["retention_time_ms"],) = _INT64.unpack_from(data, at)
        at += _INT64.size
    count, at = _count(data, at, flexible)
    topics: list[tuple[str, int]] = []
    offsets: list[OffsetRow] = []
    places: list[int] = []
    body |= {"topics": topics, "offsets": offsets, "places": places}
    for _ in range(count):
        name, at = _required(read, data, at)
        rows, at = _partitions(version, name, data, at, places)
        topics.append((name, len(rows)))
        offsets += rows
        at = _after_tags(data, at) if flexible else at
    return body, _after_tags(data, at) if flexible else at


def _partitions(
    version: int, topic: str, data: bytes, at: int, places: list[int]
) -> tuple[list[OffsetRow], int]:
    flexible = version >= FLEXIBLE_SINCE
    read = _compact_string if flexible else _plain_string
    count, at = _count(data, at, flexible)
    rows: list[OffsetRow] = []
    for _ in range(count):
        places.append(at + _INT32.size)
        if version >= EPOCH_SINCE:
            number, offset, epoch = _PARTITION_EPOCH.unpack_from(data, at)
            at += _PARTITION_EPOCH.size
        else:
            number, offset = _PARTITION.unpack_from(data, at)
            epoch = _NO_EPOCH
            at += _PARTITION.size
        metadata, at = read(data, at)
        rows.append([topic, number, offset, epoch, metadata or ""])
        if flexible:
            at = _after_tags(data, at)
    return rows, at


def _required(read: _Read, data: bytes, at: int) -> tuple[str, int]:
    text, end = read(data, at)
    if text is None:
        raise ValueError(f"null at byte {at}")
    return text, end


def _compact_string(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = varint(data, at)
    if length <= 1:
        return ("" if length else None), at
    return _text(data, at, length - 1)


def _plain_string(data: bytes, at: int) -> tuple[str | None, int]:
    (length,) = _INT16.unpack_from(data, at)
    at += _INT16.size
    return (None, at) if length < 0 else _text(data, at, length)


def _text(data: bytes, at: int, length: int) -> tuple[str, int]:
    end = at + length
    if end > len(data):
        raise ValueError(f"string of {length} bytes at byte {at} of {len(data)}")
    return data[at:end].decode(), end


def _count(data: bytes, at: int, flexible: bool) -> tuple[int, int]:
    if flexible:
        count, at = varint(data, at)
        count -= 1
    else:
        (count,) = _INT32.unpack_from(data, at)
        at += _INT32.size
    if count < 0:
        raise ValueError(f"null array before byte {at}")
    return count, at


def _after_tags(data: bytes, at: int) -> int:
    """Return where the tagged fields that stand here end; none of them is known."""
    count, at = varint(data, at)
    for _ in range(count):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
        if at > len(data):
            raise ValueError(f"tagged field ends at byte {at} of {len(data)}")
    return at


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for place in range(1, _VARINT_BYTES_MAX):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError(f"number of more than {_VARINT_BYTES_MAX} bytes at byte {at}")


def encode_commit_errors(
    topics: Iterable[tuple[str, Errors]], *, throttle: bool, flexible: bool
) -> bytes:
    """Encode the body of an OffsetCommit or TxnOffsetCommit answer.

    throttle: whether the version has a throttle time, which is 0 here.
    """
    row = _ERROR_TAGS if flexible else _ERROR
    found = list(topics)
    parts = [_INT32.pack(0) if throttle else b"", array_length(len(found), flexible)]
    for name, errors in found:
        parts += (string(name, flexible), array_length(len(errors), flexible))
        parts += [row.pack(number, error) for number, error in errors]
        parts.append(empty_tags(flexible))
    parts.append(empty_tags(flexible))
    return b"".join(parts)
