"""Kafka's primitives read from bytes, in the classic and the compact form (KIP-482).

Each function takes the bytes and where a value stands, and returns it and where it ends; what they
raise for damaged bytes is in UNREADABLE.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from streaming.wire.errors import MalformedFrame

Read: TypeAlias = Callable[[bytes, int], tuple[str | None, int]]
Value = TypeVar("Value")

UNREADABLE = (struct.error, IndexError, ValueError)
VARINT_BYTES_MAX = 5
STRING_BYTES_MAX = 0x7FFF
"""As Kafka's generated readers refuse more, in the compact form too: records could not hold it."""

ROWS_MAX = 1 << 20
"""Most structs of a request, some hundred megabytes of memory: a leader of 250,000 partitions asks
for all of them in one AlterPartition, each with three replicas in sync.
"""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def message(
    name: str,
    read: Callable[[int, bytes, int], tuple[Value, int]],
    version: int,
    data: bytes,
    start: int,
) -> Value:
    """Return the message at data[start:], whatever follows it; raises MalformedFrame."""
    try:
        found, _ = read(version, data, start)
    except UNREADABLE as error:
        raise MalformedFrame(f"{name} version {version}: {error}") from error
    return found


def nullable_text(flexible: bool) -> Read:
    """Return what reads strings that may be null."""
    return _compact_string if flexible else _plain_string


def required(read: Read, data: bytes, at: int) -> tuple[str, int]:
    """Read a string that must not be null."""
    text, end = read(data, at)
    if text is None:
        raise ValueError(f"null at byte {at}")
    return text, end


def _compact_string(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = varint(data, at)
    if length <= 1:
        return ("" if length else None), at
    if length > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {length - 1} bytes at byte {at}")
    found, end = _slice(data, at, length - 1)
    return found.decode(), end


def _plain_string(data: bytes, at: int) -> tuple[str | None, int]:
    (length,) = _INT16.unpack_from(data, at)
    at += _INT16.size
    if length < 0:
        return None, at
    found, end = _slice(data, at, length)
    return found.decode(), end


def byte_strings(
    read: Read, data: bytes, at: int, flexible: bool
) -> tuple[list[tuple[str, bytes]], int]:
    """Read an array of structs of a string and bytes, none of them null."""
    length, at = row_count(data, at, flexible)
    rows = []
    for _ in range(length):
        name, at = required(read, data, at)
        size, at = count(data, at, flexible)
        value, at = _slice(data, at, size)
        rows.append((name, value))
        at = after_tags(data, at, flexible)
    return rows, at


def _slice(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    end = at + length
    if end > len(data):
        raise ValueError(f"{length} bytes announced at byte {at} of {len(data)}")
    return data[at:end], end


def count(data: bytes, at: int, flexible: bool) -> tuple[int, int]:
    """Read how many elements an array has, or bytes a byte string, that must not be null."""
    if flexible:
        length, at = varint(data, at)
        length -= 1
    else:
        (length,) = _INT32.unpack_from(data, at)
        at += _INT32.size
    if length < 0:
        raise ValueError(f"null before byte {at}")
    return length, at


def row_count(data: bytes, at: int, flexible: bool) -> tuple[int, int]:
    """Read how many structs an array has, which must not be null nor have more than ROWS_MAX."""
    length, at = count(data, at, flexible)
    if length > ROWS_MAX:
        raise ValueError(f"{length} structs, more than {ROWS_MAX}, before byte {at}")
    return length, at


def after_tags(data: bytes, at: int, flexible: bool = True) -> int:
    """Return where the tagged fields that stand here end; none of them is known."""
    if not flexible:
        return at
    fields, at = varint(data, at)
    for _ in range(fields):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
        if at > len(data):
            raise ValueError(f"tagged field ends at byte {at} of {len(data)}")
    return at


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for place in range(1, VARINT_BYTES_MAX):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError(f"number of more than {VARINT_BYTES_MAX} bytes at byte {at}")
