"""Heartbeats on their way into the log: many members in one event, each soon enough to count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from state.events import EventKind
from state.groups.buckets import group_bucket
from state.groups.payloads import Heartbeat
from streaming.log.api import NewRecord
from streaming.observers.ports import event

Append = Callable[[Sequence[NewRecord]], Future[range]]

_SHARE = 3
"""A member is heard of in the log within this part of its session timeout."""


class HeartbeatLog:
    """Members that were heard of since the last events; lives on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, append: Append) -> None:
        """Start with nobody heard of."""
        self._loop = loop
        self._append = append
        self._heard: dict[tuple[str, str], Heartbeat] = {}
        self._handle: asyncio.TimerHandle | None = None

    def heard(self, heartbeat: Heartbeat, session_timeout_ms: int) -> None:
        """Take a heartbeat; it is in the log within a third of the session timeout."""
        self._heard[heartbeat.group, heartbeat.member] = heartbeat
        due_s = self._loop.time() + session_timeout_ms / 1000 / _SHARE
        if self._handle is None or due_s < self._handle.when():
            self._cancel()
            self._handle = self._loop.call_at(due_s, self.flush)

    def flush(self) -> None:
        """Append what was heard, one event for each bucket of groups."""
        self._cancel()
        buckets: dict[int, list[list[object]]] = {}
        for one in self._heard.values():
            row: list[object] = [one.group, one.member, one.instance, one.generation]
            buckets.setdefault(group_bucket(one.group), []).append(row)
        self._heard.clear()
        if buckets:
            kind = EventKind.HEARTBEATS_RECEIVED
            self._append(
                [event(kind, {"heartbeats": rows}, str(bucket)) for bucket, rows in buckets.items()]
            )

    def forget(self) -> None:
        """Drop what was heard."""
        self._cancel()
        self._heard.clear()

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
