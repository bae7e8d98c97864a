"""JoinGroup and SyncGroup read and answered without the schema codec: they come all at once.

Source: JoinGroupRequest, JoinGroupResponse, SyncGroupRequest and SyncGroupResponse of Kafka 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypeAlias

from state.groups.join import SKIP_ASSIGNMENT_SINCE
from streaming.wire import since
from streaming.wire.primitives import (
    array_length,
    byte_string,
    empty_tags,
    nullable_string,
    string,
)
from streaming.wire.reading import after_tags, byte_strings, message, nullable_text, required
from streaming.wire.schema_codec import Body

JoinedMember: TypeAlias = tuple[str, str | None, bytes]
"""Id, instance and metadata of a member, as its leader is told."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_TIMEOUTS = struct.Struct(">ii")
_ERROR_GENERATION = struct.Struct(">hi")
_NO_THROTTLE = _INT32.pack(0)
_NO_TIMEOUT = -1

_JOIN_FLEXIBLE_SINCE = 6
_JOIN_INSTANCE_SINCE = 5
_JOIN_REASON_SINCE = 8
_JOIN_THROTTLE_SINCE = 2
_JOIN_TYPE_SINCE = 7

_SYNC_FLEXIBLE_SINCE = 4
_SYNC_INSTANCE_SINCE = 3
_SYNC_THROTTLE_SINCE = 1


def decode_join_group(version: int, data: bytes, start: int = 0) -> Body:
    """Decode a JoinGroup request at data[start:].

    Fields are named as in the schema, but for protocols: [(name, metadata)]. Raises MalformedFrame.
    """
    return message("JoinGroupRequest", _join_group, version, data, start)


def _join_group(version: int, data: bytes, at: int) -> tuple[Body, int]:
    flexible = version >= _JOIN_FLEXIBLE_SINCE
    read = nullable_text(flexible)
    body: Body = {"group_instance_id": None, "reason": None}
    body["group_id"], at = required(read, data, at)
    if version >= since.JOIN_GROUP_REBALANCE_TIMEOUT:
        session_ms, rebalance_ms = _TIMEOUTS.unpack_from(data, at)
        at += _TIMEOUTS.size
    else:
        (session_ms,), rebalance_ms = _INT32.unpack_from(data, at), _NO_TIMEOUT
        at += _INT32.size
    body |= {"session_timeout_ms": session_ms, "rebalance_timeout_ms": rebalance_ms}
    body["member_id"], at = required(read, data, at)
    if version >= _JOIN_INSTANCE_SINCE:
        body["group_instance_id"], at = read(data, at)
    body["protocol_type"], at = required(read, data, at)
    body["protocols"], at = byte_strings(read, data, at, flexible)
    if version >= _JOIN_REASON_SINCE:
        body["reason"], at = read(data, at)
    return body, after_tags(data, at, flexible)


def decode_sync_group(version: int, data: bytes, start: int = 0) -> Body:
    """Decode a SyncGroup request at data[start:].

    Fields are named as in the schema, but for assignments: [(member, assignment)]. Raises
    MalformedFrame.
    """
    return message("SyncGroupRequest", _sync_group, version, data, start)


def _sync_group(version: int, data: bytes, at: int) -> tuple[Body, int]:
    flexible = version >= _SYNC_FLEXIBLE_SINCE
    read = nullable_text(flexible)
    body: Body = {"group_instance_id": None, "protocol_type": None, "protocol_name": None}
    body["group_id"], at = required(read, data, at)
    (body["generation_id"],) = _INT32.unpack_from(data, at)
    body["member_id"], at = required(read, data, at + _INT32.size)
    if version >= _SYNC_INSTANCE_SINCE:
        body["group_instance_id"], at = read(data, at)
    if version >= since.SYNC_GROUP_PROTOCOL:
        body["protocol_type"], at = read(data, at)
        body["protocol_name"], at = read(data, at)
    body["assignments"], at = byte_strings(read, data, at, flexible)
    return body, after_tags(data, at, flexible)


def encode_join_group(
    version: int,
    error: int,
    *,
    generation: int,
    protocol_type: str | None,
    protocol: str | None,
    leader: str,
    skip_assignment: bool,
    member: str,
    members: Iterable[JoinedMember],
) -> bytes:
    """Encode the body of a JoinGroup answer; protocol must not be None below version 7."""
    flexible = version >= _JOIN_FLEXIBLE_SINCE
    parts = [
        _NO_THROTTLE if version >= _JOIN_THROTTLE_SINCE else b"",
        _ERROR_GENERATION.pack(error, generation),
        nullable_string(protocol_type, flexible) if version >= _JOIN_TYPE_SINCE else b"",
        nullable_string(protocol, flexible),
        string(leader, flexible),
        bytes([skip_assignment]) if version >= SKIP_ASSIGNMENT_SINCE else b"",
        string(member, flexible),
    ]
    rows = [
        string(id_, flexible)
        + (nullable_string(instance, flexible) if version >= _JOIN_INSTANCE_SINCE else b"")
        + byte_string(metadata, flexible)
        + empty_tags(flexible)
        for id_, instance, metadata in members
    ]
    return b"".join([*parts, array_length(len(rows), flexible), *rows, empty_tags(flexible)])


def encode_sync_group(
    version: int,
    error: int,
    *,
    protocol_type: str | None,
    protocol: str | None,
    assignment: bytes,
) -> bytes:
    """Encode the body of a SyncGroup answer."""
    flexible = version >= _SYNC_FLEXIBLE_SINCE
    parts = [
        _NO_THROTTLE if version >= _SYNC_THROTTLE_SINCE else b"",
        _INT16.pack(error),
    ]
    if version >= since.SYNC_GROUP_PROTOCOL:
        parts += (nullable_string(protocol_type, flexible), nullable_string(protocol, flexible))
    return b"".join([*parts, byte_string(assignment, flexible), empty_tags(flexible)])
