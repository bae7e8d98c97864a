"""What parts of the front use of its event loop; tests have one that they turn themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol


class Handle(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """Let it not come."""


class Loop(Protocol):
    """What is used of an event loop."""

    def time(self) -> float:
        """Return the loop's time in s."""

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any) -> Handle:
        """Call back at a time."""

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> Handle:
        """Call back in the loop's next turn."""


def call_from_thread(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., Any], *args: Any
) -> None:
    """Call back in the loop's next turn, from another thread; not once the loop is closed: an
    append may be answered after the front has ended in order.
    """
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


def report_failure(done: asyncio.Task[None], on_failure: Callable[[BaseException], None]) -> None:
    """Tell what a task ended with, unless it was cancelled."""
    if not done.cancelled() and (error := done.exception()) is not None:
        on_failure(error)
