"""Another process that claims the controller role under our id."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from streaming.errors import ConfigurationError

_TIMES_MAX = 3
_WITHIN_S = 600.0


class SharedId(ConfigurationError):
    """Another process is the controller with our id, again and again."""


class Rivals:
    """Counts how often the role is found to be held under our id by a session that is not ours.

    Each session counts once: what a killed front held is met until it goes with its session. Who
    takes the role back while we live is another helmstream, with a data folder of its own. Whoever
    came last counts first, and ends.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Know of none."""
        self._now_s = now_s
        self._known: set[int] = set()
        self._met_s: deque[float] = deque(maxlen=_TIMES_MAX)

    def claiming(self, session_id: int) -> None:
        """Take a session of ours before it claims the role: it may have it without hearing so."""
        self._known.add(session_id)

    def meet(self, controller_id: int, session_id: int) -> None:
        """Take the session that holds the role under our id before we claim it; raises SharedId
        at the third within minutes that is not ours.
        """
        if session_id in self._known:
            return
        self._known.add(session_id)
        now_s = self._now_s()
        self._met_s.append(now_s)
        if len(self._met_s) == _TIMES_MAX and now_s - self._met_s[0] <= _WITHIN_S:
            raise SharedId(
                f"/controller was taken {_TIMES_MAX} times by another process with controller.id ="
                f" {controller_id}: another helmstream controls this cluster, with another"
                " data.dir; stop one of them. One that waits until the other is gone is"
                " helmstream run --standby with the same data.dir"
            )
