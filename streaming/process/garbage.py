"""How Python's garbage collector is set in processes that take large batches or hold much."""

from __future__ import annotations

import gc
from typing import Any

_ALLOCATIONS_PER_COLLECTION = 100_000
_COLLECTIONS_PER_OLDER = 20

_ALLOCATIONS_PER_LOOK = 20_000
"""How many new objects are looked at together; 5 ms, about."""


def collect_rarely() -> None:
    """Leave what is there now out of later collections, and make these rare.

    A batch over 100,000 partitions makes a million small objects, none of them in a cycle. Looking
    for cycles every 700 of them took a third of the time in which znode writes are prepared.
    """
    _collect_what_comes(_ALLOCATIONS_PER_COLLECTION)


def collect_each_once() -> None:
    """Leave what is there now, and whatever outlives its first collection, out of later ones.

    For a process that keeps what it makes and must not stand still: a look at everything would take
    it seconds (docs/measurements.md). A cycle that ends only after its first collection is never
    found, so what lives long has to be in none, or to break it when it ends.
    """
    _collect_what_comes(_ALLOCATIONS_PER_LOOK)
    gc.callbacks.append(_freeze_after)


def _collect_what_comes(allocations: int) -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(allocations, _COLLECTIONS_PER_OLDER, _COLLECTIONS_PER_OLDER)


def _freeze_after(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        gc.freeze()
