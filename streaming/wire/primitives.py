"""Kafka's variable-length primitives as bytes, in the classic and the compact form (KIP-482)."""

from __future__ import annotations

import functools
import struct

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def unsigned_varint(value: int) -> bytes:
    """Encode value >= 0, seven bits per byte, least significant group first."""
    if value <= 0x7F:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@functools.lru_cache(maxsize=1 << 14)
def signed_varint(value: int) -> bytes:
    """Encode a number of up to 64 bits, those near zero in few bytes (zigzag)."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def array_length(length: int, flexible: bool) -> bytes:
    """Encode what stands in front of an array's elements."""
    return unsigned_varint(length + 1) if flexible else _INT32.pack(length)


def string(value: str, flexible: bool) -> bytes:
    """Encode a string as UTF-8 behind its length in bytes."""
    encoded = value.encode()
    if flexible:
        return unsigned_varint(len(encoded) + 1) + encoded
    return _INT16.pack(len(encoded)) + encoded


def nullable_string(value: str | None, flexible: bool) -> bytes:
    """Encode a string or null."""
    if value is not None:
        return string(value, flexible)
    return b"\x00" if flexible else _INT16.pack(-1)


def byte_string(data: bytes, flexible: bool) -> bytes:
    """Encode bytes behind their length."""
    return array_length(len(data), flexible) + data


def empty_tags(flexible: bool) -> bytes:
    """Encode "no tagged fields", which only flexible versions have."""
    return b"\x00" if flexible else b""
