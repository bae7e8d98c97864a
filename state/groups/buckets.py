"""Buckets: how groups are spread, whatever the number of slots.

Events about many groups at once (heartbeats, timers, expiration) are made for one bucket each, so
that each is folded by one machine however many machines there are.
"""

from __future__ import annotations

import zlib

BUCKETS = 16_384
_TIMER_PREFIX = "groups/"


def group_bucket(group: str) -> int:
    """Return the bucket of a group: crc32 of its name, 0 to 16,383."""
    return zlib.crc32(group.encode()) % BUCKETS


def bucket_of_key(key: str) -> int:
    """Return the bucket that an event's key names; raises ValueError."""
    if not key.isascii() or not key.isdecimal() or not 0 <= int(key) < BUCKETS:
        raise ValueError(f"key {key!r} is not a bucket from 0 to {BUCKETS - 1}")
    return int(key)


def timer_name(bucket: int) -> str:
    """Return the name of a bucket's timer."""
    return f"{_TIMER_PREFIX}{bucket}"


def bucket_of_timer(timer: str) -> int | None:
    """Return the bucket whose timer it is; None for a timer of the controller."""
    if not timer.startswith(_TIMER_PREFIX):
        return None
    return int(timer.removeprefix(_TIMER_PREFIX))
