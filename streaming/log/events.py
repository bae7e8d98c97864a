"""Events on their way to the event log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

import orjson

from state.event_kinds import EventKind
from streaming.log.api import NewRecord


class EventAppender(Protocol):
    """The door to the event log."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events; returns when they are durable. Raises LogError."""

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """Append events without waiting; order of calls is order of offsets."""


AppendEvents = Callable[[Sequence[NewRecord]], Future[range]]
"""EventAppender.append_async, for who does nothing else with the log."""


def event(kind: EventKind, body: dict[str, Any], key: str = "") -> NewRecord:
    """Return an event's record; key is what it is about, "" for one about the whole cluster."""
    return NewRecord(kind, key, orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
