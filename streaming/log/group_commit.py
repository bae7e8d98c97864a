"""What many threads append, made durable in groups by one thread: the writers' common half.

One group is everything that was waiting when the thread came back from the group before, so the
cost of making it durable is shared by all who wait for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from streaming.log.api import LogClosed, LogError, NewRecord

GROUP_BYTES_MAX = 8 * 1024 * 1024
"""Where a group ends; one append is never cut."""

Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True)
class Append(Generic[Stored]):
    """One call waiting for its group: its records in stored form."""

    records: list[Stored]
    size_bytes: int
    future: Future[range]


class GroupCommit(Generic[Stored]):
    """Calls `commit` with one group after the other, on a thread of its own.

    `commit` sets each future of the group, to offsets or an error; it calls `give_up` when nothing
    can be appended any more. `what` names the log in errors. `stored` gives a record its stored
    form or raises LogError, `size_bytes` is what that counts for in a group.
    """

    def __init__(
        self,
        what: str,
        commit: Callable[[list[Append[Stored]]], None],
        stored: Callable[[NewRecord], Stored],
        size_bytes: Callable[[Stored], int],
    ) -> None:
        self._what = what
        self._commit = commit
        self._stored = stored
        self._size_bytes = size_bytes
        self._waiting: deque[Append[Stored]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._broken: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"log-{what}", daemon=True)
        self._thread.start()

    def submit(self, records: Sequence[NewRecord]) -> Future[range]:
        """Queue the records of one call; order of calls is order of groups. One that cannot be
        stored fails the call.
        """
        future: Future[range] = Future()
        try:
            stored = [self._stored(record) for record in records]
        except LogError as refused:
            future.set_exception(refused)
            return future
        size_bytes = sum(map(self._size_bytes, stored))
        with self._wake:
            if self._closing or self._broken:
                future.set_exception(self._refusal())
                return future
            self._waiting.append(Append(stored, size_bytes, future))
            self._wake.notify()
        return future

    def give_up(self, group: list[Append[Stored]], error: Exception) -> None:
        """Fail the group and everything after it: what the log holds is unknown until it is opened
        again.
        """
        self._broken = error
        fail(group, self._refusal())

    def close(self) -> bool:
        """Let the thread finish what was queued; False when it was closed before."""
        with self._wake:
            if self._closing:
                return False
            self._closing = True
            self._wake.notify()
        self._thread.join()
        return True

    def _refusal(self) -> LogClosed:
        if self._broken is None:
            return LogClosed(f"{self._what}: the writer is closed")
        return LogClosed(f"{self._what}: the writer gave up, open the log again: {self._broken}")

    def _run(self) -> None:
        while group := self._next_group():
            if self._broken:
                fail(group, self._refusal())
            else:
                self._commit(group)

    def _next_group(self) -> list[Append[Stored]]:
        """Wait for appends and take them, in order; empty when closing and all is done."""
        with self._wake:
            while True:
                self._wake.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return []
                group: list[Append[Stored]] = []
                size_bytes = 0
                while self._waiting and (not group or size_bytes < GROUP_BYTES_MAX):
                    waiting = self._waiting.popleft()
                    if waiting.future.set_running_or_notify_cancel():
                        group.append(waiting)
                        size_bytes += waiting.size_bytes
                if group:
                    return group


def time_of(given_ms: int | None, now_ms: int, before_ms: int) -> int:
    """Return a record's time: what it brings, or the clock's where that does not go back."""
    return max(now_ms, before_ms) if given_ms is None else given_ms


def fail(group: list[Append[Stored]], error: LogError) -> None:
    """Tell everybody in the group."""
    for waiting in group:
        waiting.future.set_exception(error)
