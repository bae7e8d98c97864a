"""The records of __consumer_offsets, as Kafka's own coordinator writes and reads them.

A key is an int16 version and its fields: 0 and 1 an offset (group, topic, partition), 2 a group. A
value is an int16 version and its fields; no value is a tombstone. Source: OffsetCommitKey,
OffsetCommitValue, GroupMetadataKey and GroupMetadataValue of Kafka 3.9. Every broker from 2.1 on
reads what is written, of members with group.instance.id every one from 2.3 on.
"""

from __future__ import annotations

import functools
import struct
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.offsets.batches import BatchRecord
from streaming.wire.errors import WireError
from streaming.wire.primitives import byte_string, nullable_string, string
from streaming.wire.schema_codec import MessageSchema

KeyValue = tuple[bytes, bytes | None]

_OFFSET_FIELDS = ("offset", "leader_epoch", "metadata", "commit_ms", "expire_ms")

_VERSION = struct.Struct(">h")
_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
_OFFSET_EPOCH = struct.Struct(">hqi")
_COMMIT_EXPIRE = struct.Struct(">qq")
_INT64 = struct.Struct(">q")
_GENERATION = struct.Struct(">i")
_SINCE_COUNT = struct.Struct(">qi")  # state timestamp, number of members
_TIMEOUTS = struct.Struct(">ii")  # rebalance, session
_BARE_OFFSET = struct.Struct(">hqihq")  # without metadata

_OFFSET_KEY = 1
_GROUP_KEY = 2
_GROUP_VALUE = 2
_GROUP_VALUE_INSTANCES = 3
_OFFSET_VALUE = 3
_OFFSET_VALUE_EXPIRING = 1
_LAST_OFFSET_VALUE = 4
_LAST_GROUP_VALUE = 4
_UNKNOWN_EPOCH = -1
_NEVER = -1


_string = functools.partial(string, flexible=False)
_nullable_string = functools.partial(nullable_string, flexible=False)
_byte_string = functools.partial(byte_string, flexible=False)


class UnreadableRecord(Exception):
    """A record that no version of Kafka's coordinator up to 3.9 writes; the message says why."""


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """One committed offset; value is None for a tombstone, else the fields of RECORD."""

    group: str
    topic: str
    partition: int
    value: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One group's metadata; value is None for a tombstone, else as in group_observed."""

    group: str
    value: dict[str, Any] | None


@functools.cache
def _group_schema() -> MessageSchema:
    return MessageSchema("GroupMetadataValue", "streaming.wire.schemas")


def encode_record(group: str, record: Mapping[str, Any]) -> KeyValue:
    """Return key and value of a record as change_group carries it (docs/decision-log.md)."""
    value = record["value"]
    if record["type"] == "group_metadata":
        return _group_key(group), None if value is None else _group_value(value)
    key = _offset_key(group, record["topic"], record["partition"])
    if value is None:
        return key, None
    fields = (value[name] for name in _OFFSET_FIELDS)
    return key, _offset_value(*fields)


def offset_records(
    group: str, timestamp_ms: int, rows: Iterable[Sequence[Any]]
) -> Iterator[BatchRecord]:
    """Yield the records of committed offsets, given as rows (state.groups.offset_rows)."""
    topic, head, start = None, b"", _VERSION.pack(_OFFSET_KEY) + _string(group)
    for name, partition, offset, leader_epoch, metadata, commit_ms, expire_ms, _ in rows:
        if name != topic:
            topic, head = name, start + _string(name)
        value = _offset_value(offset, leader_epoch, metadata, commit_ms, expire_ms)
        yield BatchRecord(timestamp_ms, head + _PARTITION.pack(partition), value)


def decode_record(key: bytes | None, value: bytes | None) -> OffsetRecord | GroupRecord | None:
    """Return the record, None for one that coordinators of 3.9 pass over (an unknown key).

    Raises UnreadableRecord.
    """
    try:
        if key is None:
            raise ValueError("a record without a key")
        (version,) = _VERSION.unpack_from(key)
        if version > _GROUP_KEY:
            return None
        group, end = _read_string(key, _VERSION.size)
        if version == _GROUP_KEY:
            return GroupRecord(group, None if value is None else _read_group(value))
        topic, end = _read_string(key, end)
        (partition,) = _PARTITION.unpack_from(key, end)
        read = None if value is None else _read_offset(value)
        return OffsetRecord(group, topic, partition, read)
    except (struct.error, ValueError, WireError) as error:
        raise UnreadableRecord(f"key {key and key[:100]!r}: {error}") from error


def _group_key(group: str) -> bytes:
    return _VERSION.pack(_GROUP_KEY) + _string(group)


def _offset_key(group: str, topic: str, partition: int) -> bytes:
    return _VERSION.pack(_OFFSET_KEY) + _string(group) + _string(topic) + _PARTITION.pack(partition)


def _offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int | None
) -> bytes:
    """Version 3 has the leader epoch; version 1 has a time to expire, which 3 has not."""
    if expire_ms is None and not metadata:
        return _BARE_OFFSET.pack(_OFFSET_VALUE, offset, leader_epoch, 0, commit_ms)
    text = _string(metadata)
    if expire_ms is None:
        head = _OFFSET_EPOCH.pack(_OFFSET_VALUE, offset, leader_epoch)
        return head + text + _INT64.pack(commit_ms)
    head = _VERSION.pack(_OFFSET_VALUE_EXPIRING) + _INT64.pack(offset)
    return head + text + _COMMIT_EXPIRE.pack(commit_ms, expire_ms)


def _read_offset(data: bytes) -> dict[str, Any]:
    (version,) = _VERSION.unpack_from(data)
    if not 0 <= version < _LAST_OFFSET_VALUE:
        raise ValueError(f"offset value version {version}, allowed 0 to {_LAST_OFFSET_VALUE - 1}")
    epoch, expire_ms = _UNKNOWN_EPOCH, _NEVER
    if version >= _OFFSET_VALUE:
        _, offset, epoch = _OFFSET_EPOCH.unpack_from(data)
        metadata, end = _read_string(data, _OFFSET_EPOCH.size)
    else:
        (offset,) = _INT64.unpack_from(data, _VERSION.size)
        metadata, end = _read_string(data, _VERSION.size + _INT64.size)
    (commit_ms,) = _INT64.unpack_from(data, end)
    if version == _OFFSET_VALUE_EXPIRING:
        (expire_ms,) = _INT64.unpack_from(data, end + _INT64.size)
    return {
        "offset": offset,
        "leader_epoch": epoch,
        "metadata": metadata,
        "commit_ms": commit_ms,
        "expire_ms": None if expire_ms == _NEVER else expire_ms,
    }


def _group_value(value: Mapping[str, Any]) -> bytes:
    """Version 3 has members' instances, which brokers before 2.3 do not know; 2 has all the rest.

    The schema codec does the same in five times the time.
    """
    since_ms = value["state_since_ms"]
    members = value["members"]
    instances = any(member["instance"] is not None for member in members)
    parts = [
        _VERSION.pack(_GROUP_VALUE_INSTANCES if instances else _GROUP_VALUE),
        _string(value["protocol_type"] or ""),
        _GENERATION.pack(value["generation"]),
        _nullable_string(value["protocol"]),
        _nullable_string(value["leader"]),
        _SINCE_COUNT.pack(_NEVER if since_ms is None else since_ms, len(members)),
    ]
    for member in members:
        parts += (
            _string(member["member"]),
            _nullable_string(member["instance"]) if instances else b"",
            _string(member["client"]),
            _string(member["host"]),
            _TIMEOUTS.pack(member["rebalance_timeout_ms"], member["session_timeout_ms"]),
            _byte_string(a2b_base64(member["subscription"])),
            _byte_string(a2b_base64(member["assignment"])),
        )
    return b"".join(parts)


def _read_group(data: bytes) -> dict[str, Any]:
    (version,) = _VERSION.unpack_from(data)
    if not 0 <= version < _LAST_GROUP_VALUE:
        raise ValueError(f"group value version {version}, allowed 0 to {_LAST_GROUP_VALUE - 1}")
    body, _ = _group_schema().decode_prefix(version, data, _VERSION.size)
    since_ms = body["current_state_timestamp"]
    return {
        "protocol_type": body["protocol_type"],
        "generation": body["generation"],
        "protocol": body["protocol"],
        "leader": body["leader"],
        "state_since_ms": None if since_ms == _NEVER else since_ms,
        "members": [_member_of(member) for member in body["members"]],
    }


def _member_of(body: Mapping[str, Any]) -> dict[str, Any]:
    session_ms, rebalance_ms = body["session_timeout"], body["rebalance_timeout"]
    return {
        "member": body["member_id"],
        "instance": body["group_instance_id"],
        "client": body["client_id"],
        "host": body["client_host"],
        # Version 0 knows one timeout for both.
        "rebalance_timeout_ms": session_ms if rebalance_ms == _NEVER else rebalance_ms,
        "session_timeout_ms": session_ms,
        "metadata": b64encode(body["subscription"]).decode(),
        "assignment": b64encode(body["assignment"]).decode(),
    }


def _read_string(data: bytes, start: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(data, start)
    begin = start + _LENGTH.size
    if length < 0 or begin + length > len(data):
        raise ValueError(f"string of {length} bytes at byte {start} of {len(data)}")
    return data[begin : begin + length].decode(), begin + length
