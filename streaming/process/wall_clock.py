"""The wall clock in Kafka's unit, and one that nobody sets."""

from __future__ import annotations

import time

_STARTED_NS = time.time_ns() - time.monotonic_ns()


def wall_clock_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def steady_clock_ms() -> int:
    """Return milliseconds since the epoch as they pass in this process, whatever becomes of the
    wall clock after its start: for times that are compared with one another.
    """
    return (_STARTED_NS + time.monotonic_ns()) // 1_000_000
