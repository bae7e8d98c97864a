"""The sinks' ZooKeeper session in memory, as one that has no multiRead: what it is asked is
answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from kazoo.protocol.serialization import GetData
from kazoo.protocol.states import ZnodeStat

from streaming.zk.errors import NodeMissing, ZkErrorCode
from streaming.zk.ops import Create, Delete, MultiOp, OpResult, SetData
from streaming.zk.types import ZNode
from tests.fixtures.fake_zookeeper import FakeZooKeeper


class Answered:
    """What was asked for, or why it is not there."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def result(self, _timeout_s: float) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class MemorySession(FakeZooKeeper):
    """A session that is never lost; a znode has its parent, and none below it when it goes.

    denied: below which path nothing may be written, "" for none. fixed: znodes that may not be set.
    behind_multi: what happens behind each multi.
    """

    chroot = ""
    session_timeout_ms = 1_000
    lacks_multi_read = True
    denied = ""
    fixed: Collection[str] = ()
    behind_multi: Callable[[Sequence[MultiOp]], None] | None = None

    def children(self, path: str) -> list[str]:
        below = path + "/"
        names = [one.removeprefix(below) for one in self.nodes if one.startswith(below)]
        return sorted(name for name in names if "/" not in name)

    def multi_async(self, ops: Sequence[MultiOp]) -> Answered:
        results: list[OpResult] = self.multi(ops)
        if self.behind_multi is not None:
            self.behind_multi(ops)
        return Answered(results)

    def submit(self, request: Any, path: str) -> Answered:
        """Answer what `multiread` asks for one path: its data, or what is below it."""
        node = self.get(path)
        if node is None:
            return Answered(NodeMissing(ZkErrorCode.NO_NODE, path))
        if isinstance(request, GetData):
            return Answered((node.data, _stat(node)))
        return Answered(self.children(path))

    def sync(self) -> None:
        """Nothing lags behind."""

    def wait_until_held(self, _timeout_s: float) -> None:
        """It is held."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def _code(self, op: MultiOp) -> int:
        below = self.denied and op.path.startswith(self.denied + "/")
        if below or (isinstance(op, SetData) and op.path in self.fixed):
            return ZkErrorCode.NO_AUTH
        parent = op.path.rpartition("/")[0]
        if isinstance(op, Create) and parent and parent not in self.nodes:
            return ZkErrorCode.NO_NODE
        return super()._code(op) or self._emptiness(op)

    def _emptiness(self, op: MultiOp) -> int:
        full = isinstance(op, Delete) and self.children(op.path)
        return ZkErrorCode.NOT_EMPTY if full else 0


def _stat(node: ZNode) -> ZnodeStat:
    ids = (node.czxid, node.mzxid, 0, node.mtime_ms)
    return ZnodeStat(*ids, node.version, 0, 0, node.ephemeral_owner, len(node.data), 0, 0)
