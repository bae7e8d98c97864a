"""Ends this process when the event log hangs: who cannot append what happens must not be the
controller, and could not give the role back in order.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from streaming.front.event_log import EventLog

logger = logging.getLogger(__name__)

_GRACE_S = 2.0
"""For a writer that has a limit of its own and says what was wrong, and after a pause of all of
this process.
"""
_LET_GO_TIMEOUT_S = 5.0


class LogWatch:
    """Looks at the event log on a thread of its own, for as long as the process lives.

    Whatever else waits for the log meanwhile, an orderly end included, goes with the process.
    """

    def __init__(self, log: EventLog, limit_s: float, let_go: Callable[[], None]) -> None:
        """limit_s: for how long the log may leave all appends unanswered. let_go: gives up what
        others wait for, without the log.
        """
        self._log = log
        self._limit_s = limit_s
        self._let_go = let_go

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._watch, name="log-watch", daemon=True).start()

    def _watch(self) -> None:
        while not self._hangs():
            pass
        # What lets go and what writes logs may hang as well.
        ending = threading.Thread(target=self._say_and_let_go, name="log-hangs", daemon=True)
        ending.start()
        ending.join(_LET_GO_TIMEOUT_S)
        os._exit(1)

    def _hangs(self) -> bool:
        """Wait until the log could have reached its limit; return whether it has."""
        since_s = self._log.silent_since_s
        silent_s = 0.0 if since_s is None else time.monotonic() - since_s
        if silent_s < self._limit_s:
            time.sleep(self._limit_s - silent_s)
            return False
        time.sleep(_GRACE_S)
        return self._log.silent_since_s == since_s

    def _say_and_let_go(self) -> None:
        self._let_go()
        logger.critical(
            "the event log has answered no append for %g s: this process ends, and the controller"
            " role goes with its session",
            self._limit_s,
        )
