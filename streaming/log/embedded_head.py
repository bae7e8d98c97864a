"""The `head` file: where the writer publishes the durable end to readers in other processes.

Updated after each fsync of the segment and never fsynced itself: what it says may be stale after
a power failure, never too much.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from pathlib import Path

import numpy as np

from checkpoints.durable import naming
from streaming.log import futex

_MAGIC = b"helmhead"
_PAIR = struct.Struct("<QQ")  # end_offset, end_offset ^ _MASK
_PAIR_AT = len(_MAGIC)
_HEAD_BYTES = _PAIR_AT + _PAIR.size
_MASK = 0xA5A5_5A5A_A5A5_5A5A
_LOW_WORD_AT = _PAIR_AT if sys.byteorder == "little" else _PAIR_AT + 4
_READ_TRIES = 1000

LOOK_EVERY_S = 0.004
"""How often who waits looks where nobody can wake it."""


class Head:
    """The mapped head of one log folder; `end_offset` costs well under a microsecond to read."""

    def __init__(self, file: Path, *, writable: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        fd = os.open(file, flags | os.O_CLOEXEC, 0o644)
        try:
            if writable:
                with naming(file):
                    _make_room(fd)
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._map = mmap.mmap(fd, _HEAD_BYTES, access=access)
        finally:
            os.close(fd)
        # The mapping stays where it is; an array that was kept would forbid to close it.
        self._word_at = np.frombuffer(self._map, np.uint8).ctypes.data + _LOW_WORD_AT

    def end_offset(self) -> int | None:
        """The durable end; None when the file does not hold a valid one."""
        if self._map[:_PAIR_AT] != _MAGIC:
            return None
        # The two words differ only while a writer is between storing them.
        for _ in range(_READ_TRIES):
            end, check = _PAIR.unpack_from(self._map, _PAIR_AT)
            if end ^ check == _MASK:
                return int(end)
        return None

    def publish(self, end_offset: int) -> None:
        """Make `end_offset` visible; only for offsets whose records were fsynced."""
        _PAIR.pack_into(self._map, _PAIR_AT, end_offset, end_offset ^ _MASK)
        if self._map[:_PAIR_AT] != _MAGIC:
            self._map[:_PAIR_AT] = _MAGIC
        if futex.can_wake():
            futex.wake(self._word_at)

    def wait(self, end_offset: int, timeout_s: float) -> None:
        """Return when the end may not be `end_offset` any more, at the latest after `timeout_s`.

        Costs nothing meanwhile where the writer can wake us, which it does on the same machine.
        """
        if futex.can_wake():
            futex.wait(self._word_at, end_offset & 0xFFFF_FFFF, timeout_s)
        else:
            time.sleep(min(timeout_s, LOOK_EVERY_S))

    def close(self) -> None:
        self._map.close()


def _make_room(fd: int) -> None:
    """Give the file its size with blocks behind it: on a full disk a write through a mapping would
    end the process by a signal. Raises OSError.
    """
    head = os.pread(fd, _HEAD_BYTES, 0).ljust(_HEAD_BYTES, b"\0")
    os.ftruncate(fd, _HEAD_BYTES)
    os.pwrite(fd, head, 0)


def open_head(file: Path) -> Head | None:
    """The head for reading, or None while the folder has none that can be read."""
    try:
        head = Head(file, writable=False)
    except (FileNotFoundError, ValueError):
        return None
    if head.end_offset() is None:
        head.close()
        return None
    return head
