"""The order in which replicas that fail together leave an ISR.

When every member of an ISR fails in one event the last one to leave stays in it. Kafka takes
replicas off one broker at a time in the iteration order of Scala 2.13's immutable HashMap over
broker ids: ascending by the id's hash, five bits at a time from the low end. Ids whose hashes share
their low five bits are ordered by the next five here, whatever other brokers fail with them, so
that the result never depends on which partitions a slot happens to hold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from state.matrix import NONE, Int32s

_SHIFTS = (0, 5, 10, 15, 20, 25, 30)


def removal_rank(ids: Int32s) -> npt.NDArray[np.int64]:
    """Return a number per id, shaped like ids: the higher, the later it leaves; -1 for padding."""
    mixed = ids.astype(np.int64) & 0xFFFFFFFF
    mixed = (mixed + (~(mixed << 9) & 0xFFFFFFFF)) & 0xFFFFFFFF
    mixed ^= mixed >> 14
    mixed = (mixed + (mixed << 4)) & 0xFFFFFFFF
    mixed ^= mixed >> 10
    rank = np.zeros_like(mixed)
    for shift in _SHIFTS:
        rank = (rank << 5) | ((mixed >> shift) & 31)
    return np.where(ids == NONE, -1, rank)


def last_to_leave(isr: Int32s) -> Int32s:
    """Return int32[n]: of each ISR int32[n, W] the member that stays when all fail together, -1 for
    an empty one.
    """
    if isr.shape[1] == 0:
        return np.full(len(isr), NONE, dtype=np.int32)
    last: Int32s = isr[np.arange(len(isr)), np.argmax(removal_rank(isr), axis=1)]
    return last
