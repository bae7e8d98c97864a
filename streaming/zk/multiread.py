"""Reads many znodes at once by ZooKeeper's multiRead, many in a request and several in flight."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from kazoo.protocol.serialization import GetChildren, GetData
from numpy.typing import NDArray

from streaming.zk.errors import ConnectionLost, NodeMissing, RequestFailed, ZkErrorCode
from streaming.zk.ops import MISSING_STAT, ReadChildrenRequest, ReadDataRequest, pack_stat
from streaming.zk.pending import Pending
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode

PATHS_PER_REQUEST = 500
MAX_IN_FLIGHT = 10
_MAX_REQUEST_BYTES = 512 * 1024  # the server closes a connection that sends jute.maxbuffer (1 MiB)
_TARGET_RESPONSE_BYTES = 1024 * 1024  # no limit of the server's: keeps memory and latency modest
_RECORD_OVERHEAD_BYTES = 16

_Data = tuple[list[bytes | None], bytes]
_Children = list[list[str] | None]
_Answer = TypeVar("_Answer")
_Key = TypeVar("_Key")
_Found = TypeVar("_Found")

_STAT = np.dtype(
    [
        ("czxid", ">i8"),
        ("mzxid", ">i8"),
        ("ctime_ms", ">i8"),
        ("mtime_ms", ">i8"),
        ("version", ">i4"),
        ("cversion", ">i4"),
        ("aversion", ">i4"),
        ("ephemeral_owner", ">i8"),
        ("data_bytes", ">i4"),
        ("children", ">i4"),
        ("pzxid", ">i8"),
    ]
)


@dataclass(frozen=True, slots=True)
class ZNodeColumns:
    """Many znodes, in the order asked for; a missing one has data None and version -1.

    version int32[n]; czxid, mzxid, mtime_ms, ephemeral_owner int64[n].
    """

    data: list[bytes | None]
    version: NDArray[np.int32]
    czxid: NDArray[np.int64]
    mzxid: NDArray[np.int64]
    mtime_ms: NDArray[np.int64]
    ephemeral_owner: NDArray[np.int64]

    def znode(self, row: int) -> ZNode | None:
        """Return one row as a znode."""
        data = self.data[row]
        if data is None:
            return None
        return ZNode(
            data,
            int(self.version[row]),
            int(self.czxid[row]),
            int(self.mzxid[row]),
            int(self.mtime_ms[row]),
            int(self.ephemeral_owner[row]),
        )


def read_many(session: ZkReader, paths: Sequence[str]) -> ZNodeColumns:
    """Read the data of many znodes.

    500 paths per request and 10 requests in flight; fewer paths when znodes are large, so that a
    response stays near 1 MiB, and half as many after a lost connection. A server before 3.6 has no
    multiRead: it gets one getData per path, 500 in flight. Each request sees one state of the tree;
    different requests may see different ones. Raises RequestFailed (no read permission),
    ZooKeeperUnreachable (no connection for a session timeout) and SessionLost.
    """
    data: list[bytes | None] = []
    stats: list[bytes] = []
    for (some_data, some_stats), _ in _read(session, paths):
        data += some_data
        stats.append(some_stats)
    return _columns(data, b"".join(stats))


class Part(NamedTuple):
    """Some rows of what is read, in order.

    one_state: all are of one state of the tree; otherwise each may be of another one.
    """

    columns: ZNodeColumns
    one_state: bool


def read_in_parts(session: ZkReader, paths: Sequence[str]) -> Iterator[Part]:
    """Yield what `read_many` returns, in order, some rows at a time: what the caller does with them
    is done while further answers are on their way.
    """
    for (data, stats), one_state in _read(session, paths):
        yield Part(_columns(data, stats), one_state)


def _read(session: ZkReader, paths: Sequence[str]) -> Iterator[tuple[_Data, bool]]:
    return _Pipeline(session, paths, ReadDataRequest, _data_bytes, _read_one_by_one).answers()


def _data_bytes(answer: _Data) -> int:
    data, stats = answer
    return sum(len(value) for value in data if value is not None) + len(stats)


def children_many(session: ZkReader, paths: Sequence[str]) -> list[list[str] | None]:
    """List the children of many znodes, unsorted; None for a missing one. Errors as read_many."""
    pipeline = _Pipeline(session, paths, ReadChildrenRequest, _children_bytes, _children_one_by_one)
    return [children for answer, _ in pipeline.answers() for children in answer]


def read_each(
    keys: Sequence[_Key],
    read: Callable[[Sequence[_Key]], Sequence[_Found]],
    leave_out: Callable[[_Key, RequestFailed], None],
) -> dict[_Key, _Found]:
    """Return by key what is read of all at once, or of each alone where one may not be read.

    leave_out: gets each of those that may not be read, and why.
    """
    try:
        return dict(zip(keys, read(keys), strict=True))
    except RequestFailed as error:
        if len(keys) > 1:
            alone = [read_each([one], read, leave_out) for one in keys]
            return {key: found for one in alone for key, found in one.items()}
        leave_out(keys[0], error)
        return {}


def _children_bytes(answer: _Children) -> int:
    return sum(len(name) + 4 for names in answer if names for name in names)


class _Pipeline(Generic[_Answer]):
    """Sends batches of paths in order, several in flight, and yields the answers in order, with
    whether all of one is of one state of the tree.
    """

    def __init__(
        self,
        session: ZkReader,
        paths: Sequence[str],
        request: Callable[[Sequence[str], str], Any],
        answer_bytes: Callable[[_Answer], int],
        one_by_one: Callable[[ZkReader, Sequence[str]], _Answer],
    ) -> None:
        self._session = session
        self._paths = paths
        self._request = request
        self._answer_bytes = answer_bytes
        self._one_by_one = one_by_one
        self._batch = PATHS_PER_REQUEST
        self._taken = 0
        self._timeout_s = session.session_timeout_ms / 1000

    def answers(self) -> Iterator[tuple[_Answer, bool]]:
        deadline = time.monotonic() + self._timeout_s
        while self._taken < len(self._paths):
            before = self._taken
            try:
                if self._session.lacks_multi_read:
                    for answer in self._answers_one_by_one():
                        yield answer, False
                else:
                    for answer in self._answers_until_lost():
                        yield answer, True
            except ConnectionLost:
                if self._taken > before:  # the bound is on time without progress
                    deadline = time.monotonic() + self._timeout_s
                self._session.wait_until_held(deadline - time.monotonic())
                self._batch = max(1, self._batch // 2)
            except RequestFailed as error:
                if error.code != ZkErrorCode.UNIMPLEMENTED:
                    raise
                self._session.lacks_multi_read = True  # this one was connected with meanwhile

    def _answers_one_by_one(self) -> Iterator[_Answer]:
        while self._taken < len(self._paths):
            chunk = self._paths[self._taken : self._taken + PATHS_PER_REQUEST]
            answer = self._one_by_one(self._session, chunk)
            self._taken += len(chunk)
            yield answer

    def _answers_until_lost(self) -> Iterator[_Answer]:
        in_flight: deque[tuple[int, Pending[_Answer]]] = deque()
        sent = self._taken
        while sent < len(self._paths) or in_flight:
            # The first answer tells how large these znodes are before many are asked for.
            allowed = MAX_IN_FLIGHT if self._taken else 1
            while sent < len(self._paths) and len(in_flight) < allowed:
                batch = self._next_batch(sent)
                request = self._request(batch, self._session.chroot)
                in_flight.append((len(batch), self._session.submit(request, batch[0])))
                sent += len(batch)
            count, pending = in_flight.popleft()
            answer = pending.result(self._timeout_s)
            self._taken += count
            size = self._answer_bytes(answer)
            if size > _TARGET_RESPONSE_BYTES:
                self._batch = max(1, count * _TARGET_RESPONSE_BYTES // size)
            yield answer

    def _next_batch(self, start: int) -> Sequence[str]:
        batch = self._paths[start : start + self._batch]
        size = 0
        for count, path in enumerate(batch):
            size += len(path) + len(self._session.chroot) + _RECORD_OVERHEAD_BYTES
            if size > _MAX_REQUEST_BYTES and count:
                return batch[:count]
        return batch


def _columns(data: list[bytes | None], stats: bytes) -> ZNodeColumns:
    table = np.frombuffer(stats, dtype=_STAT)
    return ZNodeColumns(
        data,
        table["version"].astype(np.int32),
        table["czxid"].astype(np.int64),
        table["mzxid"].astype(np.int64),
        table["mtime_ms"].astype(np.int64),
        table["ephemeral_owner"].astype(np.int64),
    )


def _read_one_by_one(session: ZkReader, paths: Sequence[str]) -> _Data:
    answers = _all_answers(session, paths, GetData)
    data = [None if answer is None else answer[0] for answer in answers]
    return data, b"".join(MISSING_STAT if a is None else pack_stat(*a[1]) for a in answers)


def _children_one_by_one(session: ZkReader, paths: Sequence[str]) -> _Children:
    return _all_answers(session, paths, GetChildren)


def _all_answers(session: ZkReader, paths: Sequence[str], request: Callable[..., Any]) -> list[Any]:
    in_flight = [session.submit(request(session.chroot + path, None), path) for path in paths]
    answers: list[Any] = []
    for pending in in_flight:
        try:
            answers.append(pending.result(session.session_timeout_ms / 1000))
        except NodeMissing:
            answers.append(None)
    return answers
