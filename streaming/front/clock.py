"""The clock: appends timer_due when an armed timer's deadline comes, and sleeps otherwise."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping

from state.event_kinds import EventKind
from state.groups.buckets import bucket_of_timer
from streaming.log.api import NewRecord
from streaming.log.events import AppendEvents, event

_QUEUE_SHARE = 4
"""The queue has at most so many entries for each timer: one that is moved leaves its old one."""


class Clock:
    """Armed timers by name, each due once; lives on one event loop.

    now_ms is the clock of events' times, in ms: a machine takes a timer for due by the time of the
    event. It may jump ahead, or go slower than time: a timer that fires early is set again.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, append: AppendEvents, now_ms: Callable[[], int]
    ) -> None:
        """Start with no timer armed."""
        self._loop = loop
        self._append = append
        self._now_ms = now_ms
        self._deadlines: dict[str, int] = {}
        self._latest_ms: dict[str, int] = {}
        self._queue: list[tuple[int, str]] = []
        self._handle: asyncio.TimerHandle | None = None

    @property
    def armed(self) -> Mapping[str, int]:
        """Deadline in ms by timer."""
        return self._deadlines

    def arm(self, timer: str, deadline_ms: int, *, slack_ms: int) -> None:
        """Arm a timer, or move it; it may ring up to slack_ms late, together with others."""
        self._deadlines[timer] = deadline_ms
        latest_ms = self._latest_ms[timer] = deadline_ms + slack_ms
        heapq.heappush(self._queue, (latest_ms, timer))
        self._schedule()

    def replace(self, deadlines_ms: Mapping[str, int]) -> None:
        """Forget all timers and arm these."""
        self._deadlines = dict(deadlines_ms)
        self._latest_ms = dict(deadlines_ms)
        self._queue_anew()
        self._schedule()

    def clear(self) -> None:
        """Forget all timers."""
        self.replace({})

    def _schedule(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if len(self._queue) > _QUEUE_SHARE * len(self._latest_ms):
            self._queue_anew()
        while self._queue and self._latest_ms.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        if self._queue:
            delay_s = (self._queue[0][0] - self._now_ms()) / 1000
            self._handle = self._loop.call_later(max(delay_s, 0.0), self._fire)

    def _queue_anew(self) -> None:
        self._queue = [(latest_ms, timer) for timer, latest_ms in self._latest_ms.items()]
        heapq.heapify(self._queue)

    def _fire(self) -> None:
        now_ms = self._now_ms()
        due = sorted((d, timer) for timer, d in self._deadlines.items() if d <= now_ms)
        if due:
            self._append([_due(timer, deadline_ms) for deadline_ms, timer in due])
        for _, timer in due:
            del self._deadlines[timer], self._latest_ms[timer]
        self._schedule()


def _due(timer: str, deadline_ms: int) -> NewRecord:
    body = {"timer": timer, "deadline_ms": deadline_ms}
    bucket = bucket_of_timer(timer)
    if bucket is None:
        return event(EventKind.TIMER_DUE, body)
    return event(EventKind.GROUP_TIMER_DUE, body, str(bucket))
