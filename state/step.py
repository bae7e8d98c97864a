"""The fold: a machine's state and the next events in, decisions out.

`fold` is the only door. It changes the machine in place, one event at a time in offset order, so
what is decided never depends on how the log was cut into batches. An event that cannot be read is
set aside with its offset and the reason; the machine is then as if the event had not happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from state.bodies import SetAside
from state.cluster.cluster import Cluster
from state.cluster.handlers import CLUSTER_HANDLERS
from state.decisions import Decision, DecisionKind, json_decision
from state.errors import MalformedEvent
from state.events import Event, parse_payload
from state.groups.handlers import GROUP_HANDLERS
from state.groups.slot import GroupSlot
from state.handlers import Handlers
from state.partitions.handlers import SLOT_HANDLERS
from state.partitions.slot import Slot
from state.partitions.together import fold_slot
from state.routing import CLUSTER_AND_SLOTS, CLUSTER_KEY, is_group_key, scope

Machine: TypeAlias = Slot | Cluster | GroupSlot


def new_machine(key: int) -> Machine:
    """Return the initial machine of a state key."""
    if is_group_key(key):
        return GroupSlot()
    return Cluster() if key == CLUSTER_KEY else Slot()


def fold(machine: Machine, events: Iterable[Event]) -> list[Decision]:
    """Fold events, ascending by offset, into the machine and return what each decides."""
    if isinstance(machine, Slot):
        return fold_slot(machine, events, step)
    return [decision for event in events for decision in step(machine, event)]


def step(machine: Machine, event: Event) -> list[Decision]:
    """Fold one event; one that cannot be read, or that nobody but a topic's slot could fold, is set
    aside.
    """
    try:
        payload = parse_payload(event)
    except MalformedEvent as error:
        return [set_aside(event, str(error))]
    handler = _handlers(machine).get(type(payload))
    if handler is not None:
        return handler(machine, event, payload)
    if scope(event.kind, event.key) == CLUSTER_AND_SLOTS:
        return []
    return [set_aside(event, f"{event.kind} names no topic")]


def _handlers(machine: Machine) -> Handlers[Any]:
    if isinstance(machine, GroupSlot):
        return GROUP_HANDLERS
    return CLUSTER_HANDLERS if isinstance(machine, Cluster) else SLOT_HANDLERS


def set_aside(event: Event, reason: str) -> Decision:
    """Return the decision that an event has no effect, and why."""
    body: SetAside = {
        "kind": event.kind,
        "key": event.key,
        "reason": reason,
        "payload_bytes": len(event.payload),
    }
    return json_decision(event.offset, DecisionKind.SET_ASIDE, body)
