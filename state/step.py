"""The fold: a machine's state and the next events in, decisions out.

`fold` is the only door. It changes the machine in place, one event at a time in offset order, so
what is decided never depends on how the log was cut into batches. An event that cannot be read is
set aside with its offset and the reason; the machine is then as if the event had not happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

from state.cluster.authority import Phase
from state.cluster.cluster import Cluster
from state.cluster.machine import CLUSTER_HANDLERS
from state.decisions import Decision, DecisionKind, json_decision
from state.errors import MalformedEvent
from state.events import Event, EventKind, parse_payload
from state.groups.handlers import GROUP_HANDLERS
from state.groups.slot import GroupSlot
from state.partitions.handlers import SLOT_HANDLERS
from state.partitions.new_topics import create_observed, is_new
from state.partitions.slot import Slot
from state.payloads import TopicObserved
from state.routing import ALL, CLUSTER_KEY, is_group_key, scope

Machine: TypeAlias = Slot | Cluster | GroupSlot


def new_machine(key: int) -> Machine:
    """Return the initial machine of a state key."""
    if is_group_key(key):
        return GroupSlot()
    return Cluster() if key == CLUSTER_KEY else Slot()


def fold(machine: Machine, events: Iterable[Event]) -> list[Decision]:
    """Fold events, ascending by offset, into the machine and return what it decides, in order.

    New topics that follow one another are created together; each event decides what it decides
    alone.
    """
    if not isinstance(machine, Slot):
        return [decision for event in events for decision in step(machine, event)]
    decisions: list[Decision] = []
    new: dict[str, tuple[Event, TopicObserved]] = {}
    for event in events:
        observed = _new_topic(machine, event, new)
        if observed is not None:
            new[observed.topic] = (event, observed)
            continue
        decisions += _created(machine, new)
        new = {}
        decisions += step(machine, event)
    return decisions + _created(machine, new)


def _new_topic(slot: Slot, event: Event, others: Collection[str]) -> TopicObserved | None:
    if event.kind != EventKind.TOPIC_OBSERVED or slot.authority.phase is not Phase.ACTIVE:
        return None
    try:
        observed = parse_payload(event)
    except MalformedEvent:
        return None
    assert isinstance(observed, TopicObserved)
    return observed if is_new(slot, observed, others) else None


def _created(slot: Slot, new: Mapping[str, tuple[Event, TopicObserved]]) -> list[Decision]:
    if not new:
        return []
    decisions = create_observed(slot, list(new.values()))
    if decisions is not None:
        return decisions
    return [decision for event, _ in new.values() for decision in step(slot, event)]


def step(machine: Machine, event: Event) -> list[Decision]:
    """Fold one event; one that cannot be read, or that nobody but a topic's slot could fold, is set
    aside.
    """
    handlers: Any = _handlers(machine)
    try:
        payload = parse_payload(event)
    except MalformedEvent as error:
        return [set_aside(event, str(error))]
    handler = handlers.get(type(payload))
    if handler is None:
        return (
            []
            if scope(event.kind, event.key) == ALL
            else [set_aside(event, f"{event.kind} names no topic")]
        )
    found: list[Decision] = handler(machine, event, payload)
    return found


def _handlers(machine: Machine) -> Any:
    if isinstance(machine, GroupSlot):
        return GROUP_HANDLERS
    return CLUSTER_HANDLERS if isinstance(machine, Cluster) else SLOT_HANDLERS


def set_aside(event: Event, reason: str) -> Decision:
    """Return the decision that an event has no effect, and why."""
    return json_decision(
        event.offset,
        DecisionKind.SET_ASIDE,
        {
            "kind": event.kind,
            "key": event.key,
            "reason": reason,
            "payload_bytes": len(event.payload),
        },
    )
