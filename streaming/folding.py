"""Folds events in this process: what it says of them is what the query would say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from checkpoints.replay import States, batches, fold_batch
from checkpoints.what_if import Setting, rewritten
from state.events import Event
from state.merge import MergedDecision
from state.routing import Layout
from streaming.decided_rows import FoldedBatch, load_goes_on, rung_timers
from streaming.log.api import LogReader

_FOLDED_AT_ONCE = 10_000


def fold_range(
    states: States,
    reader: LogReader,
    events: range,
    layout: Layout,
    *,
    batch: int = _FOLDED_AT_ONCE,
    what_if: Mapping[str, Setting] | None = None,
) -> Iterator[FoldedBatch]:
    """Fold the events of these offsets, changing the states, and yield each batch once the states
    have it.

    batch: how many events at once at most. what_if: settings to change in the events
    (`checkpoints.what_if`). Raises OffsetOutOfRange when the log does not have the events.
    """
    found = _events(reader, events, what_if or {})
    for one in batches(found, batch):
        yield fold_events(states, one, layout)


def fold_events(states: States, events: Sequence[Event], layout: Layout) -> FoldedBatch:
    """Fold events, ascending by offset and at least one, changing the states."""
    return folded_events(fold_batch(states, events, layout), events)


def folded_events(decisions: list[MergedDecision], events: Sequence[Event]) -> FoldedBatch:
    """Return what a fold of these events, at least one, decided as a micro-batch says it."""
    times = {event.offset: event.time_ms for event in events}
    end = events[-1].offset + 1
    return FoldedBatch(decisions, times, end, load_goes_on(events), rung_timers(events))


def _events(reader: LogReader, events: range, what_if: Mapping[str, Setting]) -> Iterator[Event]:
    for record in reader.read(events.start, events.stop):
        event = record.as_event()
        if what_if:
            event = replace(event, payload=rewritten(event.kind, event.payload, what_if))
        yield event
