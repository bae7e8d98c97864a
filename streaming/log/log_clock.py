"""The log's clock: the wall's time, without its steps back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_RATE_AHEAD = 15 / 16
"""How fast time passes here while the wall is behind, so that what is ahead goes away: an hour of
it in sixteen. Timers then ring at most a fifteenth of their time late.
"""


def wall_clock_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class LogClock:
    """One clock for who stamps events and who waits for their times; any thread may ask it.

    It is the wall clock as long as that goes forward. While the wall is behind what was told
    before, it goes on from there: deadlines are set by events' times, and must come about.
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
        self._told_ms = 0.0
        self._told_s = elapsed_s()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, never fewer than before."""
        with self._lock:
            now_s = self._elapsed_s()
            goes_on_ms = self._told_ms + (now_s - self._told_s) * 1000 * _RATE_AHEAD
            self._told_ms, self._told_s = max(self._wall_ms(), goes_on_ms), now_s
            return int(self._told_ms)

    def not_before(self, time_ms: int) -> None:
        """Go on from a time that was told before, as by a log's last record."""
        with self._lock:
            if time_ms > self._told_ms:
                self._told_ms, self._told_s = float(time_ms), self._elapsed_s()
