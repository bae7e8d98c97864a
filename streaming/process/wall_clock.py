"""The wall clock in Kafka's unit."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
