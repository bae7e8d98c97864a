"""The writes of one call, made by the caller as they are sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from streaming.zk.multis import parts
from streaming.zk.ops import WriteOp, op_bytes
from streaming.zk.write_limits import WriteLimits


class WriteSource:
    """Takes writes from what makes them, and cuts them into multis as long as they can go straight.

    Writes are made while ZooKeeper makes those before them: to make 100,000 first would let it wait
    for a quarter of a second. ops and sizes: of all writes that are made, in order.
    """

    def __init__(self, ops: Iterable[WriteOp], limits: WriteLimits, chroot_bytes: int) -> None:
        """Take what makes the writes, which is asked for as many as a multi has room for."""
        self.ops: list[WriteOp] = []
        self.sizes: list[int] = []
        self._coming = iter(ops)
        self._limits = limits
        self._chroot_bytes = chroot_bytes
        self._paths: set[str] = set()  # of the writes that go straight
        self._cut: deque[range] = deque()
        self._straight = 0  # the writes before this one were cut into multis

    @property
    def is_empty(self) -> bool:
        """Whether there is no write at all; the first are made to know that."""
        if not self.ops:
            self._cut_next()
        return not self.ops

    def next_multi(self) -> range | None:
        """Return the places of the writes of the next multi; None when there are none, or when
        among the next is one to a znode that has one already, or one too large to be made.
        """
        if not self._cut and self._straight == len(self.ops):
            self._cut_next()
        return self._cut.popleft() if self._cut else None

    def rest(self) -> range:
        """Return the places of the writes that were not in a multi, and make them all."""
        start = self._cut[0].start if self._cut else self._straight
        self._cut.clear()
        self._make(None)
        self._straight = len(self.ops)
        return range(start, len(self.ops))

    def _cut_next(self) -> None:
        start = self._straight
        if not self._make(self._limits.max_ops_per_multi):
            return
        paths = {op.path for op in self.ops[start:]}
        sizes = self.sizes[start:]
        new = len(paths) == len(sizes) and paths.isdisjoint(self._paths)
        if new and max(sizes) <= self._limits.max_bytes_per_write:
            self._paths |= paths
            self._cut.extend(
                range(start + part.start, start + part.stop) for part in parts(sizes, self._limits)
            )
            self._straight = len(self.ops)

    def _make(self, count: int | None) -> bool:
        """Make some more writes, or all; returns whether there were any."""
        made = list(islice(self._coming, count))
        self.ops += made
        self.sizes += [op_bytes(op) + self._chroot_bytes for op in made]
        return bool(made)
