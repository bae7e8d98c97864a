"""States of a consumer group and the moves between them (Kafka's GroupState)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """States by the names that clients see."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


LEGAL_PREVIOUS: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING}),
    GroupState.PREPARING: frozenset({GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY}),
    GroupState.COMPLETING: frozenset({GroupState.PREPARING}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING}),
    GroupState.DEAD: frozenset(GroupState),
}
"""From where each state may be entered."""


def is_legal(current: GroupState, target: GroupState) -> bool:
    """Return whether a group may move from one state to another."""
    return current in LEGAL_PREVIOUS[target]


def can_rebalance(state: GroupState) -> bool:
    """Return whether a rebalance may begin in this state."""
    return is_legal(state, GroupState.PREPARING)
