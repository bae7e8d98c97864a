"""Time of an event loop, and of the wall, that passes when a test says so."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any


class Call:
    """A call that is to come."""

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._call: tuple[Callable[..., Any], tuple[Any, ...]] | None = (callback, args)

    def cancel(self) -> None:
        self._call = None

    def run(self) -> None:
        if self._call is not None:
            callback, args = self._call
            callback(*args)


class StandingTime:
    """The Loop of sessions; turns: what is done between two turns of the loop, as reading."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.turns: Callable[[], None] = lambda: None
        self._order = itertools.count()
        self._set: list[tuple[float, int, Call]] = []
        self._soon: list[Call] = []

    def time(self) -> float:
        return self.now_ms / 1000

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any) -> Call:
        call = Call(callback, args)
        heapq.heappush(self._set, (when, next(self._order), call))
        return call

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Call:
        call = Call(callback, args)
        self._soon.append(call)
        return call

    def ring(self) -> None:
        """Call what is due, and then what that calls soon."""
        while self._set and self._set[0][0] <= self.time():
            heapq.heappop(self._set)[2].run()
        while self._soon:
            soon, self._soon = self._soon, []
            self.turns()
            for call in soon:
                call.run()

    def pass_to(self, ms: int) -> None:
        """Let time pass until then, with every call at its time."""
        while self._set and (due_ms := _first_ms(self._set[0][0])) <= ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.ring()
        self.now_ms = max(self.now_ms, ms)
        self.ring()


def _first_ms(when: float) -> int:
    """Return the first whole millisecond at which a time has come."""
    ms = math.floor(when * 1000)
    while ms / 1000 < when:
        ms += 1
    return ms
