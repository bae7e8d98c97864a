"""What Spark's state store holds of a machine: its bytes, compressed.

Spark hands a state to Python and back in each batch that concerns its machine, byte by byte in the
JVM. A packed value is the magic `HZ`, a version, the unpacked length as uint32 little-endian and an
LZ4 block; docs/state-format.md is the specification.
"""

from __future__ import annotations

import pyarrow as pa

from state.errors import CorruptBlock

PACKING_VERSION = 1
_MAGIC = b"HZ"
_HEADER_BYTES = 7
_CODEC = pa.Codec("lz4_raw")


def packed(data: bytes) -> bytes:
    """Return a machine's bytes as the state store holds them."""
    header = _MAGIC + bytes([PACKING_VERSION]) + len(data).to_bytes(4, "little")
    return header + bytes(_CODEC.compress(data, asbytes=True))


def unpacked(value: bytes) -> bytes:
    """Return a machine's bytes out of the state store; those that were never packed as they are.

    Raises CorruptBlock when a packed value is of another version or broken.
    """
    if value[:2] != _MAGIC:
        return value
    if value[2:3] != bytes([PACKING_VERSION]):
        raise CorruptBlock(
            f"state is packed as version {value[2:3]!r}, this program reads {PACKING_VERSION}"
        )
    length = int.from_bytes(value[3:_HEADER_BYTES], "little")
    try:
        return bytes(_CODEC.decompress(value[_HEADER_BYTES:], length, asbytes=True))
    except (pa.ArrowException, OSError) as error:
        raise CorruptBlock(f"stored state cannot be unpacked: {error}") from None
