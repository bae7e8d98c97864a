"""Folds a log again without Spark: the operator's own function, machine by machine.

States are bytes between batches, so every batch begins as after a restart; what is decided does not
depend on where the batches are cut or over how many slots the topics are spread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from checkpoints.fold import fold_state
from state.decisions import Decision
from state.events import Event
from state.merge import MergedDecision, decision_digest_input, merge
from state.routing import Layout, machine_keys, scope

States = dict[int, bytes]
"""Encoded machines by state key."""


def fold_batch(states: States, batch: Iterable[Event], layout: Layout) -> list[MergedDecision]:
    """Fold events, ascending by offset, changing the states; return the merged decisions."""

    def fold(key: int, events: list[Event]) -> list[Decision]:
        states[key], decisions = fold_state(key, states.get(key), events)
        return decisions

    return fold_by_machine(fold, batch, layout)


def fold_by_machine(
    fold: Callable[[int, list[Event]], list[Decision]], batch: Iterable[Event], layout: Layout
) -> list[MergedDecision]:
    """Give each machine that has some its events, by state key; return the merged decisions."""
    by_key: dict[int, list[Event]] = {}
    for event in batch:
        for key in machine_keys(scope(event.kind, event.key), layout):
            by_key.setdefault(key, []).append(event)
    return merge(chain.from_iterable(fold(key, events) for key, events in by_key.items()))


def batches(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    """Yield the events in lists of at most `size`."""
    left = iter(events)
    while batch := list(islice(left, size)):
        yield batch


class Digest:
    """SHA-256 over a sequence of decisions as docs/decision-log.md defines it."""

    def __init__(self) -> None:
        """Start with no decisions."""
        self._hash = hashlib.sha256()
        self.decisions = 0

    def update(self, decisions: Iterable[MergedDecision]) -> None:
        """Take the next decisions in order."""
        for decision in decisions:
            self._hash.update(decision_digest_input(decision))
            self.decisions += 1

    def hexdigest(self) -> str:
        """Return the digest so far."""
        return self._hash.hexdigest()
