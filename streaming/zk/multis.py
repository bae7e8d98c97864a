"""Which writes go together in one multi, and which of them made it fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from streaming.zk.chain import Chain
from streaming.zk.ops import WriteOp
from streaming.zk.write_limits import WriteLimits

Batch = list[tuple[Chain, int]]
"""What one multi carries: chains, and how many of each chain's writes."""


def parts(sizes: Sequence[int], limits: WriteLimits) -> Iterator[range]:
    """Cut writes of these sizes into multis; one large write goes alone."""
    start, room = 0, limits.max_bytes_per_multi
    for place, size in enumerate(sizes):
        if place > start and (place - start == limits.max_ops_per_multi or size > room):
            yield range(start, place)
            start, room = place, limits.max_bytes_per_multi
        room -= size
    if sizes:
        yield range(start, len(sizes))


def next_batch(
    waiting: deque[Chain], limits: WriteLimits, chroot_bytes: int
) -> tuple[Batch, list[WriteOp]]:
    """Take the chains of the next multi, and the writes of theirs that it makes, in order."""
    ops: list[WriteOp] = []
    batch: Batch = []
    room = limits.max_bytes_per_multi
    while waiting and len(ops) < limits.max_ops_per_multi:
        chain = waiting[0]
        if chain.alone and batch:
            break
        fitting, size = chain.fitting(limits.max_ops_per_multi - len(ops), room)
        if not fitting and not batch:  # one large write goes alone
            fitting, size = chain.fitting(1, limits.max_bytes_per_write)
        if not fitting:
            break
        waiting.popleft()
        ops += fitting
        batch.append((chain, len(fitting)))
        room -= size + chroot_bytes * len(fitting)
        if chain.alone:
            break
    return batch, ops


def culprit(batch: Batch, position: int) -> tuple[int, int]:
    """Return (chain number, write of it) at a position of a multi, its check not counted."""
    offset = position
    for number, (_, count) in enumerate(batch):
        if offset < count:
            return number, offset
        offset -= count
    raise IndexError(f"a multi has no write at {position}")
