"""Folds a log the way the streaming operator does, with any slot count and any batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkpoints.fold import fold_state
from state.decisions import Decision
from state.events import Event
from state.merge import MergedDecision, merge
from state.routing import machine_keys, scope

States = dict[int, bytes]


def fold_batch(states: States, batch: Iterable[Event], slots: int) -> list[MergedDecision]:
    """Fold one batch, changing the states, and return the merged decisions.

    States are bytes between batches, so every batch begins as after a restart.
    """
    by_key: dict[int, list[Event]] = {}
    for event in batch:
        for key in machine_keys(scope(event.kind, event.key), slots):
            by_key.setdefault(key, []).append(event)
    found: list[Decision] = []
    for key, events in by_key.items():
        states[key], decisions = fold_state(key, states.get(key), events)
        found.extend(decisions)
    return merge(found)


def fold_log(
    events: Sequence[Event], slots: int, cuts: Iterable[int] = ()
) -> tuple[States, list[MergedDecision]]:
    """Fold a whole log, cut into batches at the given positions."""
    states: States = {}
    merged: list[MergedDecision] = []
    start = 0
    for end in [*sorted(set(cuts)), len(events)]:
        merged.extend(fold_batch(states, events[start:end], slots))
        start = end
    return states, merged
