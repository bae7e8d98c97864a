"""OffsetCommit read, and its answer written, without the schema codec: they are many and long.

Source: OffsetCommitRequest, OffsetCommitResponse and TxnOffsetCommitResponse of Kafka 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from streaming.wire.primitives import array_length, empty_tags, string
from streaming.wire.reading import (
    ROWS_MAX,
    after_tags,
    message,
    nullable_text,
    required,
    row_count,
)
from streaming.wire.schema_codec import Body

Errors: TypeAlias = Sequence[tuple[int, int]]
"""Partition and error code, of one topic."""

OffsetRow: TypeAlias = list[str | int]
"""Topic, partition, offset, leader epoch, metadata; the time of the commit where it is said."""

FLEXIBLE_SINCE = 8
_INSTANCE_SINCE = 7
EPOCH_SINCE = 6
RETENTION = range(2, 5)
THROTTLE_SINCE = 3
_TIMESTAMP = 1
_NO_RETENTION = _NO_EPOCH = _NO_TIMESTAMP = -1

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_PARTITION = struct.Struct(">iq")
_PARTITION_EPOCH = struct.Struct(">iqi")
_ERROR = struct.Struct(">ih")
_ERROR_TAGS = struct.Struct(">ihx")


def decode_offset_commit(version: int, data: bytes, start: int = 0) -> Body:
    """Decode an OffsetCommit request of version 1 or newer at data[start:].

    Fields are named as in the schema, but for topics: [(name, number of partitions)], and offsets,
    which are those of all topics: [topic, partition, offset, leader epoch, metadata], "" for null,
    and from a request of version 1 that says so, when each was committed.
    places: where in data each of them has its offset, and the leader epoch right behind it from
    version 6 on. Raises MalformedFrame.
    """
    return message("OffsetCommitRequest", _request, version, data, start)


def _request(version: int, data: bytes, at: int) -> tuple[Body, int]:
    flexible = version >= FLEXIBLE_SINCE
    read = nullable_text(flexible)
    body: Body = {"group_instance_id": None, "retention_time_ms": _NO_RETENTION}
    body["group_id"], at = required(read, data, at)
    (body["generation_id_or_member_epoch"],) = _INT32.unpack_from(data, at)
    body["member_id"], at = required(read, data, at + _INT32.size)
    if version >= _INSTANCE_SINCE:
        body["group_instance_id"], at = read(data, at)
    if version in RETENTION:
        (body["retention_time_ms"],) = _INT64.unpack_from(data, at)
        at += _INT64.size
    named, at = row_count(data, at, flexible)
    topics: list[tuple[str, int]] = []
    offsets: list[OffsetRow] = []
    places: list[int] = []
    body |= {"topics": topics, "offsets": offsets, "places": places}
    for _ in range(named):
        name, at = required(read, data, at)
        rows, at = _partitions(version, name, data, at, places)
        topics.append((name, len(rows)))
        offsets += rows
        if len(offsets) > ROWS_MAX:
            raise ValueError(f"more than {ROWS_MAX} partitions before byte {at}")
        at = after_tags(data, at, flexible)
    return body, after_tags(data, at, flexible)


def _partitions(
    version: int, topic: str, data: bytes, at: int, places: list[int]
) -> tuple[list[OffsetRow], int]:
    flexible = version >= FLEXIBLE_SINCE
    read = nullable_text(flexible)
    length, at = row_count(data, at, flexible)
    rows: list[OffsetRow] = []
    for _ in range(length):
        places.append(at + _INT32.size)
        if version >= EPOCH_SINCE:
            number, offset, epoch = _PARTITION_EPOCH.unpack_from(data, at)
            at += _PARTITION_EPOCH.size
        else:
            number, offset = _PARTITION.unpack_from(data, at)
            epoch = _NO_EPOCH
            at += _PARTITION.size
        commit_ms = _NO_TIMESTAMP
        if version == _TIMESTAMP:
            (commit_ms,) = _INT64.unpack_from(data, at)
            at += _INT64.size
        metadata, at = read(data, at)
        rows.append([topic, number, offset, epoch, metadata or ""])
        if commit_ms != _NO_TIMESTAMP:
            rows[-1].append(commit_ms)
        at = after_tags(data, at, flexible)
    return rows, at


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
