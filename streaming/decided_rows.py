"""What the query's operators say of a micro-batch: decisions, and how far each has folded.

Each says it as one value, in one row (docs/adr/0024). The workers that fold import nothing else of
what becomes of decisions.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from state.decisions import Decision, DecisionKind
from state.event_kinds import EventKind
from state.events import Event
from state.groups.buckets import bucket_of_key, timer_name
from state.merge import MergedDecision, merge

OUTPUT_SCHEMA = "said binary"


class _Said(NamedTuple):
    """What one machine says: rows of (offset, kind, body); the other fields as in FoldedBatch."""

    decisions: list[tuple[int, str, bytes]]
    time_ms: dict[int, int]
    end_offset: int
    loading: bool
    rung: dict[str, int]


_LOADING_AFTER: Mapping[str, bool] = {
    EventKind.CONTROLLER_ELECTED: True,
    EventKind.RESYNC_COMPLETED: False,
    EventKind.CONTROLLER_RESIGNED: False,
}


@dataclass(frozen=True, slots=True)
class FoldedBatch:
    """Events that were folded together, and all decisions about them in canonical order.

    time_ms: the times of events by offset, of those with decisions at least. end_offset: one past
    the last event. loading: a load of the cluster began in it and goes on behind it. rung: the
    event by which a timer of groups rang last, by timer.
    """

    decisions: list[MergedDecision]
    time_ms: dict[int, int]
    end_offset: int
    loading: bool = False
    rung: Mapping[str, int] = field(default_factory=dict)


def load_goes_on(events: Iterable[Event], before: bool = False) -> bool:
    """Return whether a load of the cluster is under way behind events; before: ahead of them."""
    for event in events:
        before = _LOADING_AFTER.get(event.kind, before)
    return before


def rung_timers(events: Iterable[Event]) -> dict[str, int]:
    """Return the event by which a timer of groups rang last, by timer."""
    found: dict[str, int] = {}
    for event in events:
        if event.kind == EventKind.GROUP_TIMER_DUE:
            with suppress(ValueError):  # a key that names no bucket: the event is set aside
                found[timer_name(bucket_of_key(event.key))] = event.offset
    return found


def said(events: Sequence[Event], decisions: Iterable[Decision]) -> bytes:
    """Return what an operator says of its events, at least one, as one value.

    It lives within its batch: it is never stored, and read by the Python that made it.
    """
    rows = [(one.offset, str(one.kind), one.body) for one in decisions]
    times = {event.offset: event.time_ms for event in events}
    last = events[-1].offset
    of_decisions = {offset: times[offset] for offset in (*(row[0] for row in rows), last)}
    one = _Said(rows, of_decisions, last + 1, load_goes_on(events), rung_timers(events))
    return marshal.dumps(tuple(one))


def folded_batch(rows: pa.Table) -> FoldedBatch | None:
    """Return what the operators' rows (see OUTPUT_SCHEMA) make up; None when nothing was folded."""
    # The operators of the same query have made them.
    machines = [_Said(*marshal.loads(one)) for one in rows.column("said").to_pylist()]  # noqa: S302
    if not machines:
        return None
    decisions: list[Decision] = []
    times: dict[int, int] = {}
    rung: dict[str, int] = {}
    for one in machines:
        decisions += [Decision(at, DecisionKind(kind), body) for at, kind, body in one.decisions]
        times |= one.time_ms
        rung |= one.rung
    end, loading = max(one.end_offset for one in machines), any(one.loading for one in machines)
    return FoldedBatch(merge(decisions), times, end, loading, rung)
