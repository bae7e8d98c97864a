"""What the query's operators say of a micro-batch: rows of decisions, and how far each has folded.

The workers that fold import nothing else of what becomes of decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from state.decisions import Decision, DecisionKind
from state.event_kinds import EventKind
from state.events import Event
from state.groups.buckets import bucket_of_key, timer_name
from state.merge import MergedDecision, merge

OUTPUT_SCHEMA = "offset long, time_ms long, kind string, body binary"

FOLDED = "folded"
"""Kind of the row by which an operator says how far it has folded; it is not a decision."""

RUNG = "rung"
"""Kind of a row by which an operator says that it has folded the ring of the timer in its body; no
decision either.
"""

LOADING = b"loading"
"""Body of the row of FOLDED when the last of its events leave a load of the cluster under way."""

_NO_DECISIONS = frozenset({FOLDED, RUNG})
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


def output_columns(events: Sequence[Event], decisions: Sequence[Decision]) -> dict[str, list[Any]]:
    """Return what an operator says of its events, at least one: columns of OUTPUT_SCHEMA."""
    times = {event.offset: event.time_ms for event in events}
    rung = rung_timers(events)
    offsets = [*(one.offset for one in decisions), *rung.values(), events[-1].offset]
    loading = LOADING if load_goes_on(events) else b""
    return {
        "offset": offsets,
        "time_ms": [times[offset] for offset in offsets],
        "kind": [*(str(one.kind) for one in decisions), *[RUNG] * len(rung), FOLDED],
        "body": [*(one.body for one in decisions), *(timer.encode() for timer in rung), loading],
    }


def folded_batch(rows: pa.Table) -> FoldedBatch | None:
    """Return what the operators' rows (see OUTPUT_SCHEMA) make up; None when nothing was folded."""
    offsets, times, kinds, bodies = (
        rows.column(name).to_pylist() for name in ("offset", "time_ms", "kind", "body")
    )
    folded = [offset for offset, kind in zip(offsets, kinds, strict=True) if kind == FOLDED]
    if not folded:
        return None
    decisions = [
        Decision(offset, DecisionKind(kind), body)
        for offset, kind, body in zip(offsets, kinds, bodies, strict=True)
        if kind not in _NO_DECISIONS
    ]
    rung = {
        body.decode(): offset
        for offset, kind, body in zip(offsets, kinds, bodies, strict=True)
        if kind == RUNG
    }
    times_by_offset = dict(zip(offsets, times, strict=True))
    loading = (FOLDED, LOADING) in zip(kinds, bodies, strict=True)
    return FoldedBatch(merge(decisions), times_by_offset, max(folded) + 1, loading, rung)
