"""Events of a micro-batch as the query carries them: parcels, each one value for many events.

What Spark does with a row costs many times what the fold of an event does (docs/adr/0024), so
events that the same machines fold travel as one row. A parcel lives within its batch: it is never
stored, and read by the Python that Spark has for all its workers.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from operator import attrgetter

from state.events import Event

EventRow = tuple[int, int, str, str, bytes]
"""offset, time_ms, kind, key, payload: an event before it becomes an object."""

_offset = attrgetter("offset")


def parcel(rows: list[EventRow]) -> bytes:
    """Return events as one value."""
    return marshal.dumps(rows)


def events_in(parcels: Iterable[bytes]) -> list[Event]:
    """Return the events of parcels in offset order."""
    # The source of the same query has made them.
    events = [Event(*row) for one in parcels for row in marshal.loads(one)]  # noqa: S302
    events.sort(key=_offset)
    return events
