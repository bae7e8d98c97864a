"""The operations of a ZooKeeper multi, and our request classes for multi and multiRead.

kazoo has no multiRead, and its multi costs several times what the bytes do; both requests share one
framing (org.apache.zookeeper.MultiOperationRecord and MultiResponse): for each operation a header
(type, done, error) and its record, and at the end a header of type -1 with done set.

Operations are tuples: they are made by the hundred thousand.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from streaming.zk.errors import RequestFailed, ZkErrorCode

_CREATE, _DELETE, _SET_DATA, _CHECK, _ERROR = 1, 2, 5, 13, -1
_GET_DATA, _GET_CHILDREN = 4, 8
_MULTI, _MULTI_READ = 14, 22
_EPHEMERAL = 1

_HEADER = struct.Struct("!iBi")
_INT = struct.Struct("!i")
_START = struct.Struct("!iBii")
"""A header and the number behind it: how much follows, or the code of an error."""

STAT_BYTES = 68  # czxid mzxid ctime mtime version cversion aversion owner length children pzxid
_STAT_VERSION_OFFSET = 32
_END = _HEADER.pack(-1, 1, -1)
OP_OVERHEAD_BYTES = 64
"""Upper bound of what one operation adds to a multi beyond path, data and ACL."""

Acl = Sequence[tuple[int, str, str]]
"""Access control list: (permission bits, scheme, id)."""

OPEN_ACL: Acl = ((31, "world", "anyone"),)

SECRET_ACL: Acl = ((31, "auth", ""),)
"""Whoever ZooKeeper knows under the name of the creator; what nobody else may read (ZkData)."""

CREATORS_ACL: Acl = (*SECRET_ACL, (1, "world", "anyone"))
"""The same, and everybody may read it."""


class Create(NamedTuple):
    """Create a znode; its parent must exist."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


class SetData(NamedTuple):
    """Replace a znode's data if its version is the expected one (-1: any)."""

    path: str
    data: bytes
    expected_version: int


class Delete(NamedTuple):
    """Delete a znode without children if its version is the expected one (-1: any)."""

    path: str
    expected_version: int = -1


class Check(NamedTuple):
    """Fail the multi unless the znode's version is this one."""

    path: str
    version: int


WriteOp = Create | SetData | Delete
MultiOp = WriteOp | Check

OpResult = tuple[int, int]
"""(error code, new version): code 0 and the znode's version after the operation (0 for a create,
-1 for a delete or check); in a failed multi a ZkErrorCode and -1."""


def first_failure(results: Sequence[OpResult]) -> int | None:
    """Return the place of the operation that made a multi fail; None when it succeeded.

    ZooKeeper stops at that one: those before it were rolled back, those after it not tried.
    """
    for place, (code, _) in enumerate(results):
        if code not in {ZkErrorCode.ROLLED_BACK, ZkErrorCode.RUNTIME_INCONSISTENCY}:
            return place
    return None


def op_bytes(op: WriteOp) -> int:
    """Upper bound of an operation's size in a multi, in bytes (without an ACL)."""
    data = 0 if isinstance(op, Delete) else len(op.data)
    path = len(op.path) if op.path.isascii() else len(op.path.encode())
    return path + data + OP_OVERHEAD_BYTES


class MultiRequest:
    """A multi as kazoo's connection sends it; paths get the chroot in front."""

    type = _MULTI

    def __init__(self, ops: Sequence[MultiOp], chroot: str, acl: Acl) -> None:
        self._ops = ops
        self._chroot = chroot
        self._acl = acl

    def serialize(self) -> bytes:
        acl = b"".join(
            (_INT.pack(len(self._acl)), *(_acl_entry(*entry) for entry in self._acl)),
        )
        kept, ephemeral = acl + _INT.pack(0), acl + _INT.pack(_EPHEMERAL)
        chroot, pack, pack_start = self._chroot, _INT.pack, _START.pack
        parts: list[bytes] = []
        for op in self._ops:
            path = (chroot + op.path).encode()
            size = len(path)
            if isinstance(op, SetData):
                start = pack_start(_SET_DATA, 0, -1, size)
                parts += (start, path, pack(len(op.data)), op.data, pack(op.expected_version))
            elif isinstance(op, Create):
                start = pack_start(_CREATE, 0, -1, size)
                rest = ephemeral if op.ephemeral else kept
                parts += (start, path, pack(len(op.data)), op.data, rest)
            elif isinstance(op, Delete):
                parts += (pack_start(_DELETE, 0, -1, size), path, pack(op.expected_version))
            else:
                parts += (pack_start(_CHECK, 0, -1, size), path, pack(op.version))
        parts.append(_END)
        return b"".join(parts)

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> list[OpResult]:
        results: list[OpResult] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if done:
                return results
            if kind == _SET_DATA:
                results.append((0, _INT.unpack_from(buffer, offset + _STAT_VERSION_OFFSET)[0]))
                offset += STAT_BYTES
            elif kind == _CREATE:
                offset += _INT.size + _INT.unpack_from(buffer, offset)[0]
                results.append((0, 0))
            elif kind == _ERROR:
                results.append((_INT.unpack_from(buffer, offset)[0], -1))
                offset += _INT.size
            else:
                results.append((0, -1))


class ReadDataRequest:
    """A multiRead of getData operations.

    Its response is (data list, stats): one 68-byte stat per znode, joined; a missing znode has None
    and MISSING_STAT.
    """

    type = _MULTI_READ

    def __init__(self, paths: Sequence[str], chroot: str) -> None:
        self._paths = paths
        self._chroot = chroot

    def serialize(self) -> bytes:
        return _read_request(_GET_DATA, self._paths, self._chroot)

    def deserialize(self, buffer: bytes, offset: int) -> tuple[list[bytes | None], bytes]:
        data: list[bytes | None] = []
        stats: list[bytes] = []
        unpack = _START.unpack_from
        for path in self._paths:
            kind, _, _, length = unpack(buffer, offset)
            offset += _START.size
            if kind == _ERROR:
                _only_missing(length, path)
                data.append(None)
                stats.append(MISSING_STAT)
                continue
            end = offset + max(length, 0)
            data.append(buffer[offset:end])
            offset = end + STAT_BYTES
            stats.append(buffer[end:offset])
        return data, b"".join(stats)


class ReadChildrenRequest:
    """A multiRead of getChildren operations; its response has None for a missing znode."""

    type = _MULTI_READ

    def __init__(self, paths: Sequence[str], chroot: str) -> None:
        self._paths = paths
        self._chroot = chroot

    def serialize(self) -> bytes:
        return _read_request(_GET_CHILDREN, self._paths, self._chroot)

    def deserialize(self, buffer: bytes, offset: int) -> list[list[str] | None]:
        results: list[list[str] | None] = []
        for path in self._paths:
            kind, _, _, count = _START.unpack_from(buffer, offset)
            offset += _START.size
            if kind == _ERROR:
                _only_missing(count, path)
                results.append(None)
                continue
            names: list[str] = []
            for _ in range(count):
                start = offset + _INT.size
                offset = start + _INT.unpack_from(buffer, offset)[0]
                names.append(buffer[start:offset].decode())
            results.append(names)
        return results


pack_stat = struct.Struct("!qqqqiiiqiiq").pack
MISSING_STAT = pack_stat(-1, -1, -1, -1, -1, -1, -1, 0, 0, 0, -1)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT.pack(len(encoded)) + encoded


def _only_missing(code: int, path: str) -> None:
    if code != ZkErrorCode.NO_NODE:
        raise RequestFailed(code, path)


def _acl_entry(permissions: int, scheme: str, identity: str) -> bytes:
    return _INT.pack(permissions) + _string(scheme) + _string(identity)


def _read_request(kind: int, paths: Sequence[str], chroot: str) -> bytes:
    header = _HEADER.pack(kind, 0, -1)
    parts: list[bytes] = []
    for path in paths:
        parts += (header, _string(chroot + path), b"\0")
    parts.append(_END)
    return b"".join(parts)
