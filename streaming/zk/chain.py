"""The writes of one call to one znode, in order, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.zk.ops import Create, Delete, OpResult, SetData, WriteOp, op_bytes
from streaming.zk.outcomes import OpOutcome, OutcomeKind
from streaming.zk.types import ZNode

Settled = tuple[int, OpOutcome]
"""(place of the write in the call, its outcome)."""


class Chain:
    """Writes to one znode that must happen in this order; the first `done` of them are settled."""

    __slots__ = ("_ops", "_places", "alone", "done", "failures", "limit", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.done = 0
        self.limit: int | None = None  # how many writes may go together: one after them failed
        self.alone = False  # goes in a multi of its own
        self.failures = (0, 0)  # (how often it made a multi fail, what was settled by then)
        self._ops: list[WriteOp] = []
        self._places: list[int] = []

    def add(self, place: int, op: WriteOp) -> None:
        self._ops.append(op)
        self._places.append(place)

    @property
    def finished(self) -> bool:
        return self.done == len(self._ops)

    @property
    def place(self) -> int:
        """The place in the call of the first write that is not settled."""
        return self._places[self.done]

    def fitting(self, max_ops: int, max_bytes: int) -> tuple[list[WriteOp], int]:
        """Return as many of the next writes as fit, and their size in bytes."""
        fitting: list[WriteOp] = []
        size = 0
        if self.limit is not None:
            max_ops = min(max_ops, self.limit)
        for op in self._ops[self.done :]:
            size_with_op = size + op_bytes(op)
            if len(fitting) == max_ops or size_with_op > max_bytes:
                break
            fitting.append(op)
            size = size_with_op
        return fitting, size

    @property
    def next_op(self) -> WriteOp:
        """The first write that is not settled."""
        return self._ops[self.done]

    def failed(self, settled: int) -> int:
        """Count a failure; return how many there were since anything else was settled."""
        count, settled_then = self.failures
        self.failures = (count + 1 if settled == settled_then else 1, settled)
        return self.failures[0]

    def settle(self, results: list[OpResult]) -> Iterator[Settled]:
        """Settle the next writes as written, one per result of a multi that succeeded."""
        self.limit = None
        for _, version in results:
            yield self._places[self.done], OpOutcome(OutcomeKind.WRITTEN, version)
            self.done += 1

    def judge(self, current: ZNode | None) -> Iterator[Settled]:
        """Settle what can be settled from the znode as it is now.

        If it is as the i-th write leaves it, the writes up to i have been made already (by this
        call before a lost connection, or by an earlier one before a crash). If the next write does
        not fit the znode, it and all after it are conflicts. Otherwise they may be tried (again).
        """
        for last in range(len(self._ops) - 1, self.done - 1, -1):
            if leaves(self._ops[last], current):
                version = -1 if current is None else current.version
                for op in self._ops[self.done : last + 1]:
                    yield self._places[self.done], _already(op, version)
                    self.done += 1
                break
        if not self.finished and not _fits(self.next_op, current):
            yield from self.give_up(OpOutcome(OutcomeKind.CONFLICT, current=current))

    def give_up(self, outcome: OpOutcome) -> Iterator[Settled]:
        """Settle everything that is left with one outcome."""
        while not self.finished:
            yield self._places[self.done], outcome
            self.done += 1


def leaves(op: WriteOp, current: ZNode | None) -> bool:
    """Tell whether the znode is as this write leaves it."""
    if isinstance(op, Delete):
        return current is None
    if current is None or current.data != op.data:
        return False
    if isinstance(op, Create):
        return current.version == 0
    return op.expected_version in {-1, current.version - 1}


def _fits(op: WriteOp, current: ZNode | None) -> bool:
    """Tell whether this write's condition holds for the znode."""
    if isinstance(op, Create):
        return current is None
    return current is not None and op.expected_version in {-1, current.version}


def _already(op: WriteOp, current_version: int) -> OpOutcome:
    if isinstance(op, SetData):
        known = op.expected_version + 1 if op.expected_version >= 0 else current_version
        return OpOutcome(OutcomeKind.WRITTEN, known)
    return OpOutcome(OutcomeKind.WRITTEN, 0 if isinstance(op, Create) else -1)
