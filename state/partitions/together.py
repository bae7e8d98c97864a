"""Events that follow one another and are folded in one step.

Most of what a small event costs is the number of numpy calls, whatever they are about. Each of
these events is about a topic of its own, and its rules look at nothing but that topic's rows, the
brokers and the settings: so the rows of all of them go through the rules together, and each event
decides, byte for byte, what it decides alone (`state.step.step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from state.cluster.authority import Phase
from state.decisions import Decision
from state.errors import MalformedEvent
from state.events import Event, EventKind, parse_payload
from state.partitions.deletion_events import (
    delete_topics_requested,
    deletions_requested,
    stops_answered,
)
from state.partitions.isr import alter_partitions, is_of_a_living_topic
from state.partitions.new_topics import create_observed, is_new
from state.partitions.slot import Slot
from state.payloads.partitions import AlterPartitionRequested, StopReplicaAnswered
from state.payloads.topics import DeleteTopicRequested, TopicDeletionRequested, TopicObserved

_KINDS = frozenset(
    {
        EventKind.TOPIC_OBSERVED,
        EventKind.ALTER_PARTITION_REQUESTED,
        EventKind.TOPIC_DELETION_REQUESTED,
        EventKind.DELETE_TOPIC_REQUESTED,
        EventKind.STOP_REPLICA_ANSWERED,
    }
)


def _always(_slot: Slot, _payload: object) -> bool:
    return True


_TOGETHER: Mapping[type, tuple[Callable[..., bool], Callable[..., list[Decision]]]] = {
    TopicObserved: (is_new, create_observed),
    AlterPartitionRequested: (is_of_a_living_topic, alter_partitions),
    TopicDeletionRequested: (_always, deletions_requested),
    DeleteTopicRequested: (_always, delete_topics_requested),
    StopReplicaAnswered: (_always, stops_answered),
}
"""By payload: whether an event can be folded with others, and how that is done."""

_Run = dict[str, tuple[Event, Any]]


def fold_slot(
    slot: Slot, events: Iterable[Event], step: Callable[[Slot, Event], list[Decision]]
) -> list[Decision]:
    """Fold events, ascending by offset, into a slot; step folds one that is folded alone."""
    decisions: list[Decision] = []
    run: _Run = {}
    for event in events:
        payload = _payload(slot, event)
        if not _goes_on(run, payload):
            decisions += _folded(slot, run)
        if payload is not None and _TOGETHER[type(payload)][0](slot, payload):
            run[payload.topic] = (event, payload)
        else:
            decisions += _folded(slot, run)
            decisions += step(slot, event)
    return decisions + _folded(slot, run)


def _payload(slot: Slot, event: Event) -> Any | None:
    """Return the payload of an event that may be folded with others, None of any other."""
    if event.kind not in _KINDS or slot.authority.phase is not Phase.ACTIVE:
        return None
    try:
        return parse_payload(event)
    except MalformedEvent:
        return None


def _goes_on(run: _Run, payload: Any | None) -> bool:
    """Return whether an event may join a run: it is of its kind, and about another topic."""
    first = next(iter(run.values()), None)
    if first is None or payload is None:
        return False
    return type(payload) is type(first[1]) and payload.topic not in run


def _folded(slot: Slot, run: _Run) -> list[Decision]:
    """Fold the events of a run, and empty it."""
    asked = list(run.values())
    run.clear()
    return _TOGETHER[type(asked[0][1])][1](slot, asked) if asked else []
