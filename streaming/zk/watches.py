"""Reads many znodes and leaves a watch on each: one SetWatches for all that one request read.

kazoo asks for a watch with the read of one znode, and a request for each costs many times as much.
SetWatches is what ZooKeeper's own client sends after it connected again
(org.apache.zookeeper.server.DataTree, setWatches): a znode that is gone, or was written after the
zxid that it names, fires at once, as does one that is awaited and there; on each other one a watch
is left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from streaming.zk.errors import ConnectionLost
from streaming.zk.multiread import Part, read_in_parts
from streaming.zk.pending import Pending
from streaming.zk.reader import RawWatch, ZkReader
from streaming.zk.types import ZNode

_SET_WATCHES = 101
_ZXID = struct.Struct("!q")
_LENGTH = struct.Struct("!i")
_NO_CHILD_WATCHES = _LENGTH.pack(0)


class _SetWatchesRequest:
    """Watches on the data of znodes, as kazoo's connection sends them; paths have the chroot.

    missing: paths of znodes whose creation is awaited.
    """

    type = _SET_WATCHES

    def __init__(
        self,
        session: ZkReader,
        paths: Sequence[str],
        missing: Sequence[str],
        read_zxid: int,
        watch: RawWatch,
    ) -> None:
        self._session = session
        self._paths = paths
        self._missing = missing
        self._read_zxid = read_zxid
        self._watch = watch

    def serialize(self) -> bytes:
        """Return the bytes, and have the watch called from now on: what fires at once comes before
        the answer. kazoo calls this on the connection's thread when it sends the request.
        """
        parts = [_ZXID.pack(self._read_zxid)]
        for paths in (self._paths, self._missing):
            self._session.expect_data_events(paths, self._watch)
            parts.append(_LENGTH.pack(len(paths)))
            for path in paths:
                encoded = path.encode()
                parts += (_LENGTH.pack(len(encoded)), encoded)
        return b"".join((*parts, _NO_CHILD_WATCHES))

    @staticmethod
    def deserialize(_buffer: bytes, _offset: int) -> None:
        """The answer says nothing."""


def read_and_watch(
    session: ZkReader, paths: Sequence[str], watch: RawWatch, *, await_missing: bool = False
) -> list[ZNode | None]:
    """Read many znodes and leave a watch on each that exists: it fires for whatever changes the
    znode after it was read.

    await_missing: leave one on each other znode too, which fires when it is created.

    Watches are lost with the connection: the caller reads all again when the session is held again.
    Errors as `read_many`.
    """
    found: list[ZNode | None] = []
    sent: list[Pending[None]] = []
    for part in read_in_parts(session, paths):
        first = len(found)
        found += [part.columns.znode(row) for row in range(len(part.columns.data))]
        of_part = paths[first : len(found)]
        sent += _leave_watches(session, of_part, part, watch, await_missing=await_missing)
    for answer in sent:
        with suppress(ConnectionLost):
            answer.result(session.session_timeout_ms / 1000)
    return found


def _leave_watches(
    session: ZkReader, paths: Sequence[str], part: Part, watch: RawWatch, *, await_missing: bool
) -> Iterator[Pending[None]]:
    """Send what leaves the watches: for znodes of one state of the tree from the newest of them on,
    since what is written later has a greater zxid than each of them.
    """
    watched = [session.chroot + path for path in paths]
    there = [row for row, value in enumerate(part.columns.data) if value is not None]
    states = [there] if part.one_state else [[row] for row in there]
    for rows in filter(None, states):
        newest = int(np.max(part.columns.mzxid[rows]))
        on_data = [watched[row] for row in rows]
        yield session.submit(_SetWatchesRequest(session, on_data, [], newest, watch), on_data[0])
    missing = [row for row, value in enumerate(part.columns.data) if value is None]
    if missing and await_missing:
        awaited = [watched[row] for row in missing]
        yield session.submit(_SetWatchesRequest(session, [], awaited, 0, watch), awaited[0])
