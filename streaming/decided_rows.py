"""What the query's operators say of a micro-batch: rows of decisions, and how far each has folded.

The workers that fold import nothing else of what becomes of decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from state.decisions import Decision, DecisionKind
from state.event_kinds import EventKind
from state.events import Event
from state.merge import MergedDecision, merge

OUTPUT_SCHEMA = "offset long, time_ms long, kind string, body binary"

FOLDED = "folded"
"""Kind of the row by which an operator says how far it has folded; it is not a decision."""

LOADING = b"loading"
"""Body of such a row when the last of its events leave a load of the cluster under way."""

_LOADING_AFTER: Mapping[str, bool] = {
    EventKind.CONTROLLER_ELECTED: True,
    EventKind.RESYNC_COMPLETED: False,
    EventKind.CONTROLLER_RESIGNED: False,
}


@dataclass(frozen=True, slots=True)
class FoldedBatch:
    """Events that were folded together, and all decisions about them in canonical order.

    time_ms: the times of events by offset, of those with decisions at least. end_offset: one past
    the last event. loading: a load of the cluster began in it and goes on behind it.
    """

    decisions: list[MergedDecision]
    time_ms: dict[int, int]
    end_offset: int
    loading: bool = False


def load_goes_on(events: Iterable[Event], before: bool = False) -> bool:
    """Return whether a load of the cluster is under way behind events; before: ahead of them."""
    for event in events:
        before = _LOADING_AFTER.get(event.kind, before)
    return before


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
        if kind != FOLDED
    ]
    times_by_offset = dict(zip(offsets, times, strict=True))
    loading = (FOLDED, LOADING) in zip(kinds, bodies, strict=True)
    return FoldedBatch(merge(decisions), times_by_offset, max(folded) + 1, loading)
