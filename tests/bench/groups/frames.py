"""Requests of group members as whole frames, made before they are timed; answers read by offset.

Versions are the newest of Kafka 3.9, all of them flexible.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.primitives import array_length, nullable_string, string, unsigned_varint
from streaming.wire.requests import encode_request_header
from streaming.wire.responses import decode_response

CORRELATION_ID = 7
TOPIC = "bench"
PROTOCOL = "range"
SESSION_MS = 120_000
REBALANCE_MS = 300_000

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, COMMIT_VERSION = 9, 5, 4, 9

_CLIENT = "bench"
_TYPE = "consumer"
_NO_TAGS = b"\0"
_INT32 = struct.Struct(">i")
_PARTITION = struct.Struct(">iqi")
_ANSWER = struct.Struct(">ixih")  # correlation id, tags, throttle time, error code
_GENERATION = struct.Struct(">i")


def _bytes(data: bytes) -> bytes:
    return unsigned_varint(len(data) + 1) + data


def _request(api: ApiKey, version: int, *parts: bytes) -> bytes:
    header = encode_request_header(api, version, CORRELATION_ID, _CLIENT)
    return frame(b"".join([header, *parts, _NO_TAGS]))


def _text(value: str | None) -> bytes:
    return nullable_string(value, flexible=True)


def subscription(number: int) -> bytes:
    """Return a member's metadata; another number asks for a rebalance."""
    topics = array_length(1, flexible=False) + string(TOPIC, flexible=False)
    return b"\0\1" + topics + _INT32.pack(4) + _INT32.pack(number)


def join_group(
    group: str,
    member: str,
    metadata: bytes,
    timeouts_ms: tuple[int, int] = (SESSION_MS, REBALANCE_MS),
) -> bytes:
    session_ms, rebalance_ms = timeouts_ms
    return _request(
        ApiKey.JOIN_GROUP,
        JOIN_VERSION,
        _text(group),
        _INT32.pack(session_ms),
        _INT32.pack(rebalance_ms),
        _text(member),
        _text(None),
        _text(_TYPE),
        array_length(1, flexible=True),
        _text(PROTOCOL),
        _bytes(metadata),
        _NO_TAGS,
        _text(None),
    )


def sync_group(group: str, member: str, generation: int, assigned: Sequence[str]) -> bytes:
    rows = [_text(one) + _bytes(_ASSIGNMENT) + _NO_TAGS for one in assigned]
    return _request(
        ApiKey.SYNC_GROUP,
        SYNC_VERSION,
        _text(group),
        _INT32.pack(generation),
        _text(member),
        _text(None),
        _text(_TYPE),
        _text(PROTOCOL),
        array_length(len(rows), flexible=True),
        *rows,
    )


_ASSIGNMENT = (
    b"\0\1"
    + array_length(1, flexible=False)
    + string(TOPIC, flexible=False)
    + array_length(4, flexible=False)
    + b"".join(map(_INT32.pack, range(4)))
    + _INT32.pack(-1)
)


def heartbeat(group: str, member: str, generation: int) -> bytes:
    return _request(
        ApiKey.HEARTBEAT,
        HEARTBEAT_VERSION,
        _text(group),
        _INT32.pack(generation),
        _text(member),
        _text(None),
    )


def offset_commit(group: str, member: str, generation: int, partitions: int) -> bytes:
    rows = [
        _PARTITION.pack(number, 123_456_789 + number, 7) + _text("") + _NO_TAGS
        for number in range(partitions)
    ]
    return _request(
        ApiKey.OFFSET_COMMIT,
        COMMIT_VERSION,
        _text(group),
        _INT32.pack(generation),
        _text(member),
        _text(None),
        array_length(1, flexible=True),
        _text(TOPIC),
        array_length(partitions, flexible=True),
        *rows,
        _NO_TAGS,
    )


def is_committed(answer: bytes, partitions: int) -> bool:
    """Return whether all partitions of an offset_commit were taken, in whichever order."""
    _, body = decode_response(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, answer)
    rows = [
        (topic["name"], one["partition_index"], one["error_code"])
        for topic in body["topics"]
        for one in topic["partitions"]
    ]
    return sorted(rows) == [(TOPIC, number, 0) for number in range(partitions)]


def is_heard(answer: bytes) -> bool:
    """Return whether a heartbeat was taken."""
    return error_of(answer) == 0


def error_of(answer: bytes) -> int:
    """Return the error code of a JoinGroup, SyncGroup or Heartbeat answer."""
    _, _, error = _ANSWER.unpack_from(answer)
    return error


class Joined:
    """A JoinGroup answer: error, generation, member id, and who the leader has to assign to."""

    __slots__ = ("error", "generation", "member", "members")

    def __init__(self, answer: bytes) -> None:
        self.error = error_of(answer)
        at = _ANSWER.size
        (self.generation,) = _GENERATION.unpack_from(answer, at)
        at += _GENERATION.size
        for _ in range(3):  # protocol type, protocol, leader
            _, at = _read(answer, at)
        found, at = _read(answer, at + 1)  # behind skip_assignment
        self.member = found.decode()
        count, at = _varint(answer, at)
        self.members: list[str] = []
        for _ in range(count - 1):
            found, at = _read(answer, at)
            self.members.append(found.decode())
            for _ in range(2):  # instance, metadata
                _, at = _read(answer, at)
            at += 1


def _read(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _varint(data, at)
    end = at + max(length - 1, 0)
    return data[at:end], end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
