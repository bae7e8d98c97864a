"""Reconstructs how one event was decided: its topic's slot folded anew, its elections noted.

What is decided does not depend on which topics share a slot, so the events about one topic and
about the whole cluster are all that is needed, and one slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine
from state.decisions import Decision
from state.event_kinds import EventKind
from state.events import Event
from state.partitions.ballots import Ballot
from state.partitions.slot import Slot
from state.routing import CLUSTER_AND_SLOTS, scope, topic_scope
from state.step import step

_ONLY_SLOT = 0


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """How one event was decided about one topic: its elections, all that the slot decided, and who
    was registered then, ascending.
    """

    ballots: tuple[Ballot, ...]
    decisions: tuple[Decision, ...]
    registered: tuple[int, ...]


def concerns(kind: str, key: str, topic: str) -> bool:
    """Return whether a topic's slot folds an event for that topic's sake or the whole cluster's."""
    of_event = scope(kind, key)
    return of_event in (CLUSTER_AND_SLOTS, topic_scope(topic))


def of_topic(events: Iterable[Event], topic: str) -> Iterator[Event]:
    """Yield the events that concern a topic."""
    return (event for event in events if concerns(event.kind, event.key, topic))


def reconstruct(
    events: Sequence[Event], topic: str, before: bytes | None = None
) -> Reconstruction | None:
    """Fold the events and return how the last one was decided about a topic.

    before: a slot's bytes as of the first event; without it the events must begin with, or before,
    an election, or it is not known: None.
    """
    *earlier, last = of_topic(events, topic)
    elected = any(event.kind == EventKind.CONTROLLER_ELECTED for event in (*earlier, last))
    if before is None and not elected:
        return None
    data = fold_state(_ONLY_SLOT, before, earlier)[0] if earlier else before
    slot = Slot() if data is None else decode_machine(data)
    assert isinstance(slot, Slot)
    slot.ballots = []
    decisions = step(slot, last)
    ballots = tuple(one for one in slot.ballots if one.topic == topic)
    return Reconstruction(ballots, tuple(decisions), tuple(sorted(slot.brokers.by_id)))
