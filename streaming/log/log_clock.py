"""The log's clock: the wall's time, without its steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streaming.process.wall_clock import wall_clock_ms

_RATE_APART = 1 / 16
"""By how much of the time that passes the clock comes nearer to a wall that was set: an hour of it
in sixteen. Timers then ring at most a sixteenth of their time early, or a fifteenth late.
"""


class LogClock:
    """One clock for who stamps events and who waits for their times; any thread may ask it.

    It begins as the wall clock. When that is set, it goes on from there, slower or faster until it
    has the wall's time again: deadlines are set by events' times, and must come about, but not all
    at once, when nobody could have been heard of meanwhile.
    elapsed_s: seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int] = wall_clock_ms,
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall_ms = wall_ms
        self._elapsed_s = elapsed_s
        self._lock = threading.Lock()
        self._told_ms = float(wall_ms())
        self._told_s = elapsed_s()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, never fewer than before."""
        with self._lock:
            now_s = self._elapsed_s()
            passed_ms = (now_s - self._told_s) * 1000
            earliest_ms = self._told_ms + passed_ms * (1 - _RATE_APART)
            latest_ms = self._told_ms + passed_ms * (1 + _RATE_APART)
            self._told_ms = min(max(self._wall_ms(), earliest_ms), latest_ms)
            self._told_s = now_s
            return int(self._told_ms)

    def not_before(self, time_ms: int) -> None:
        """Go on from a time that was told before, as by a log's last record."""
        with self._lock:
            if time_ms > self._told_ms:
                self._told_ms, self._told_s = float(time_ms), self._elapsed_s()
