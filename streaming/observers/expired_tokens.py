"""Looks for delegation tokens that have expired."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from state.event_kinds import EventKind
from streaming.log.events import EventAppender, event
from streaming.process.counters import Counters
from streaming.zk.errors import RequestFailed
from streaming.zk.reader import ZkReader
from streaming.zk.tokens import read_tokens

logger = logging.getLogger(__name__)

_TOKENS_PER_EVENT = 1_000


class ExpiredTokensObserver:
    """Appends which tokens have expired, each time that it is due to look.

    Where brokers have no tokens there is nothing to read. A token that cannot be read is logged,
    and counted as broken_delegation_tokens; it stays.
    """

    def __init__(
        self,
        session: ZkReader,
        log: EventAppender,
        counters: Counters,
        now_ms: Callable[[], int],
        *,
        interval_s: float,
    ) -> None:
        """Be due at once, and then interval_s after each look; now_ms: the wall clock, by which
        tokens end.
        """
        self._session = session
        self._log = log
        self._counters = counters
        self._now_ms = now_ms
        self._interval_s = interval_s
        self._due_s = time.monotonic()

    @property
    def due_s(self) -> float:
        """When it is due to look, by the monotonic clock."""
        return self._due_s

    def look_if_due(self) -> None:
        """Append what has expired, if it is due to look; errors as `read_many`, but RequestFailed:
        who may not read tokens is no worse a controller.
        """
        if time.monotonic() < self._due_s:
            return
        try:
            found = self._expired()
        except RequestFailed as error:
            logger.warning("delegation tokens that have expired stay: %s", error)
            found = []
        for start in range(0, len(found), _TOKENS_PER_EVENT):
            some = found[start : start + _TOKENS_PER_EVENT]
            self._log.append([event(EventKind.DELEGATION_TOKENS_EXPIRED, {"tokens": some})])
        self._due_s = time.monotonic() + self._interval_s

    def _expired(self) -> list[dict[str, object]]:
        now_ms = self._now_ms()
        return [
            {
                "token_id": token.token_id,
                "owner": token.owner,
                "expired_at_ms": token.end_ms,
                "zk_version": version,
            }
            for token, version in read_tokens(self._session, self._passed_over)
            if token.has_expired(now_ms)
        ]

    def _passed_over(self) -> None:
        self._counters["broken_delegation_tokens"] += 1
