"""Events that follow one another and are folded in one step.

Most of what a small event costs is the number of numpy calls, whatever they are about. Each of
these events is about a topic of its own, and its rules look at nothing but that topic's rows, the
brokers and the settings: so the rows of all of them go through the rules together, and each event
decides, byte for byte, what it decides alone (`state.step.step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from state.decisions import Decision
from state.errors import MalformedEvent
from state.event_kinds import EventKind
from state.events import Event, parse_payload
from state.partitions.deletion_events import (
    delete_topics_requested,
    deletions_requested,
    stops_answered,
)
from state.partitions.isr import alter_partitions, is_of_a_living_topic
from state.partitions.new_topics import create_observed, is_new
from state.partitions.slot import Slot


def _always(_slot: Slot, _payload: object) -> bool:
    return True


class Together(NamedTuple):
    """Whether an event of a kind can be folded with others now, and how such events are folded."""

    applies: Callable[[Slot, Any], bool]
    fold: Callable[[Slot, list[tuple[Event, Any]]], list[Decision]]


_TOGETHER: Mapping[str, Together] = {
    EventKind.TOPIC_OBSERVED: Together(is_new, create_observed),
    EventKind.ALTER_PARTITION_REQUESTED: Together(is_of_a_living_topic, alter_partitions),
    EventKind.TOPIC_DELETION_REQUESTED: Together(_always, deletions_requested),
    EventKind.DELETE_TOPIC_REQUESTED: Together(_always, delete_topics_requested),
    EventKind.STOP_REPLICA_ANSWERED: Together(_always, stops_answered),
}

_Run = dict[str, tuple[Event, Any]]


def fold_slot(
    slot: Slot, events: Iterable[Event], step: Callable[[Slot, Event], list[Decision]]
) -> list[Decision]:
    """Fold events, ascending by offset, into a slot; step folds one that is folded alone."""
    decisions: list[Decision] = []
    run: _Run = {}
    for event in events:
        payload = _payload(slot, event)
        if not _goes_on(run, event, payload):
            decisions += _folded(slot, run)
        if payload is not None and _TOGETHER[event.kind].applies(slot, payload):
            run[payload.topic] = (event, payload)
        else:
            decisions += _folded(slot, run)
            decisions += step(slot, event)
    return decisions + _folded(slot, run)


def _payload(slot: Slot, event: Event) -> Any | None:
    """Return the payload of an event that may be folded with others, None of any other."""
    if event.kind not in _TOGETHER or not slot.authority.is_active:
        return None
    try:
        return parse_payload(event)
    except MalformedEvent:
        return None


def _goes_on(run: _Run, event: Event, payload: Any | None) -> bool:
    """Return whether an event may join a run: it is of its kind, and about another topic."""
    first = next(iter(run.values()), None)
    if first is None or payload is None:
        return False
    return event.kind == first[0].kind and payload.topic not in run


def _folded(slot: Slot, run: _Run) -> list[Decision]:
    """Fold the events of a run, and empty it."""
    asked = list(run.values())
    if not asked:
        return []
    run.clear()
    return _TOGETHER[asked[0][0].kind].fold(slot, asked)
