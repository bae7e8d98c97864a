"""What observers need from whoever runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

import orjson

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.observers.tree import Dirty


class EventAppender(Protocol):
    """The door to the event log."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events; returns when they are durable. Raises LogError."""

    def append_async(self, records: Sequence[NewRecord]) -> Future[range]:
        """Append events without waiting; order of calls is order of offsets."""


AppendEvents = Callable[[Sequence[NewRecord]], Future[range]]
"""EventAppender.append_async, for who does nothing else with the log."""


class Topics(Protocol):
    """The topics as they were read last."""

    def __contains__(self, name: str) -> bool:
        """Return whether a topic of that name was read."""

    def topic_id(self, name: str) -> str | None:
        """Return the id that a topic was read with; None when it has none or is not known."""

    def look(self, dirty: Dirty) -> None:
        """Read what may differ, and append it."""

    def configs_changed(self, topics: Iterable[str]) -> None:
        """Read the configuration of topics again, and append what differs."""


Counters = Counter[str]
"""How often each thing worth an operator's eye happened, by its name in the status."""


def event(kind: EventKind, body: dict[str, Any], topic: str = "") -> NewRecord:
    """Return an event's record; topic is its key, "" for one about the whole cluster."""
    return NewRecord(kind, topic, orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
