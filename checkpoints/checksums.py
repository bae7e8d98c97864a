"""The checksums that Hadoop's local file system keeps beside each file.

Source: Hadoop's ChecksumFileSystem and ChecksumFs.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_HEADER = struct.Struct(">4sI")  # magic, bytes for each sum; then the sums
_MAGIC = b"crc\x00"


def sums_file(path: Path) -> Path:
    """Return where a file's checksums are."""
    return path.with_name(f".{path.name}.crc")


def are_sums(data: bytes) -> bool:
    """Return whether these are checksums; what is not, Hadoop passes over."""
    if len(data) < _HEADER.size:
        return False
    magic, chunk_bytes = _HEADER.unpack_from(data)
    return bool(magic == _MAGIC and chunk_bytes)


def matches(content: bytes, sums: bytes) -> bool:
    """Return whether these are checksums, and of this content."""
    if not are_sums(sums):
        return False
    _, chunk_bytes = _HEADER.unpack_from(sums)
    starts = range(0, len(content), chunk_bytes)
    found = [zlib.crc32(content[at : at + chunk_bytes]) for at in starts]
    return struct.pack(f">{len(found)}I", *found) == sums[_HEADER.size :]
