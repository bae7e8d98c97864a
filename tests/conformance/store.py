"""A ZooKeeper in memory: znodes with versions, multis that succeed or fail as one.

It takes the operations of `streaming.zk.ops` and answers like a ZooKeeper session, so that the real
controller claim runs against it. What it was made to write is kept in `written`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from streaming.zk.errors import ZkErrorCode
from streaming.zk.ops import Check, Create, Delete, MultiOp, OpResult, SetData
from streaming.zk.types import ZNode
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH


class UnreachableError(Exception):
    """The store does not answer: the batch dies before its state is committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """One write that took effect; fence is the version of /controller_epoch it was checked
    against, None without such a check.
    """

    op: str
    path: str
    value: Any
    expected_version: int | None
    fence: int | None


@dataclass(slots=True)
class FakeZooKeeper:
    """The znodes by path, and what a scenario wants the store to do wrong.

    answers: version that every set of a partition state claims to have given, None for the real
    one. failing: error name by kind of operation, "create" or "update".
    """

    nodes: dict[str, ZNode] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    answers: int | None = None
    failing: dict[str, str] = field(default_factory=dict)
    session_id: int = 1
    _zxid: int = 0

    def put(self, path: str, data: bytes, version: int = 0) -> None:
        """Lay a znode down, unrecorded: it was there before the scenario or came from others."""
        self._zxid += 1
        self.nodes[path] = ZNode(data, version, self._zxid, self._zxid, 0, 0)

    def change(self, path: str, data: bytes) -> None:
        """Write a znode as somebody else, unrecorded; its version rises by one."""
        before = self.nodes.get(path)
        self.put(path, data, 0 if before is None else before.version + 1)

    def remove(self, path: str) -> None:
        """Remove a znode as somebody else, unrecorded."""
        self.nodes.pop(path, None)

    def get(self, path: str) -> ZNode | None:
        """Return a znode."""
        return self.nodes.get(path)

    def create(self, path: str, data: bytes) -> None:
        """Create a znode outside of a multi."""
        self.multi([Create(path, data)])

    def multi(self, ops: Sequence[MultiOp]) -> list[OpResult]:
        """Do all operations or none, each on what those before it left; returns (error code,
        version) for each, as ZooKeeper does: it stops at the first that fails.
        """
        nodes, written = self.nodes.copy(), len(self.written)
        fence = next(
            (op.version for op in ops if isinstance(op, Check) and _is_epoch(op.path)), None
        )
        results: list[OpResult] = []
        for op in ops:
            code = self._code(op)
            if code:
                self.nodes = nodes
                del self.written[written:]
                undone = [(int(ZkErrorCode.ROLLED_BACK), -1)] * len(results)
                left = len(ops) - len(results) - 1
                return [*undone, (code, -1), *[(int(ZkErrorCode.RUNTIME_INCONSISTENCY), -1)] * left]
            results.append(self._do(op, fence))
        return results

    def _code(self, op: MultiOp) -> int:
        if isinstance(op, Create | SetData) and op.path.endswith("/state"):
            forced = self._forced("create" if isinstance(op, Create) else "update")
            if forced:
                return forced
        node = self.nodes.get(op.path)
        if isinstance(op, Create):
            return 0 if node is None else ZkErrorCode.NODE_EXISTS
        if node is None:
            return ZkErrorCode.NO_NODE
        expected = op.version if isinstance(op, Check) else op.expected_version
        return 0 if expected in {-1, node.version} else ZkErrorCode.BAD_VERSION

    def _forced(self, kind: str) -> int:
        code = self.failing.get(kind)
        if code is None:
            return 0
        by_name = {error.name.replace("_", ""): error for error in ZkErrorCode}
        if code.replace("_", "") not in by_name:
            raise UnreachableError(code)
        return by_name[code.replace("_", "")]

    def _do(self, op: MultiOp, fence: int | None) -> OpResult:
        if isinstance(op, Check):
            return 0, -1
        if isinstance(op, Delete):
            self.remove(op.path)
            self.written.append(Written("delete", op.path, None, op.expected_version, fence))
            return 0, -1
        if isinstance(op, Create):
            self.put(op.path, op.data)
            self.written.append(Written("create", op.path, _value(op.data), None, fence))
            return 0, 0
        version = self.nodes[op.path].version + 1
        self.put(op.path, op.data, version)
        self.written.append(Written("set", op.path, _value(op.data), op.expected_version, fence))
        mocked = self.answers is not None and op.path.endswith("/state")
        return 0, self.answers if mocked and self.answers is not None else version


def _is_epoch(path: str) -> bool:
    return path == CONTROLLER_EPOCH_PATH


def _value(data: bytes) -> Any:
    return orjson.loads(data) if data else None
