"""Events as rows of columns, as the log's source gives them and the operator gets them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from state.events import Event

EVENT_COLUMNS = ("offset", "time_ms", "kind", "key", "payload")


def events_of(parts: Iterable[Sequence[Sequence[Any]]]) -> list[Event]:
    """Return the events of parts, each of which has the values of EVENT_COLUMNS, in their order."""
    return [
        Event(offset, time_ms, kind, key, bytes(payload))
        for part in parts
        for offset, time_ms, kind, key, payload in zip(*part, strict=True)
    ]
