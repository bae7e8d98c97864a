"""What observers need from whoever runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol

import orjson

from state.events import EventKind
from streaming.log.api import NewRecord


class EventAppender(Protocol):
    """The door to the event log."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events; returns when they are durable. Raises LogError."""

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """Append events without waiting; order of calls is order of offsets."""


Counters = Counter[str]
"""How often each thing worth an operator's eye happened, by its name in the status."""


def event(kind: EventKind, body: dict[str, Any], topic: str = "") -> NewRecord:
    """Return an event's record; topic is its key, "" for one about the whole cluster."""
    return NewRecord(kind, topic, orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
