"""Who becomes leader: one vectorised function per strategy.

Source: Kafka 3.9's PartitionLeaderElectionAlgorithms and Election. All functions take the
assignment int32[n, R], the ISR int32[n, W] and masks shaped like the assignment, and return
int32[n] leaders, -1 where nobody can lead. They never look at a partition's state; the machine
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

import numpy as np

from state.decisions import Rule
from state.matrix import NONE, Bools, Int32s, contains, first_where


class Strategy(Enum):
    """Election strategies; UNCLEAN is OFFLINE whatever the topics' configuration allows."""

    OFFLINE = auto()
    UNCLEAN = auto()
    REASSIGN = auto()
    PREFERRED = auto()
    CONTROLLED_SHUTDOWN = auto()


RULE_OF: Mapping[Strategy, Rule] = {
    Strategy.OFFLINE: Rule.OFFLINE_PARTITION_ELECTED,
    Strategy.UNCLEAN: Rule.OFFLINE_PARTITION_ELECTED,
    Strategy.REASSIGN: Rule.REASSIGNED_PARTITION_ELECTED,
    Strategy.PREFERRED: Rule.PREFERRED_REPLICA_ELECTED,
    Strategy.CONTROLLED_SHUTDOWN: Rule.CONTROLLED_SHUTDOWN_ELECTED,
}
"""The rule that an election is filed under, but where an unclean leader won."""


def new_partition_leader(assignment: Int32s, live: Bools) -> Int32s:
    """Return the first live assigned replica."""
    return first_where(assignment, live)


def offline_leader(
    assignment: Int32s, isr: Int32s, live: Bools, unclean_allowed: Bools
) -> tuple[Int32s, Bools]:
    """Return (leader, unclean bool[n]): the first live assigned replica in the ISR.

    Where there is none and unclean_allowed bool[n] holds, the first live assigned replica, marked
    unclean.
    """
    clean = first_where(assignment, live & contains(isr, assignment))
    any_live = first_where(assignment, live)
    unclean = (clean == NONE) & unclean_allowed & (any_live != NONE)
    return np.where(unclean, any_live, clean), unclean


def reassigned_leader(assignment: Int32s, isr: Int32s, live: Bools, target: Bools) -> Int32s:
    """Return the first live ISR member among the replicas the reassignment ends with (target
    mask).
    """
    return first_where(assignment, live & target & contains(isr, assignment))


def preferred_leader(assignment: Int32s, isr: Int32s, live: Bools) -> Int32s:
    """Return the first assigned replica if it is live and in the ISR."""
    first = live & contains(isr, assignment)
    first[:, 1:] = False
    return first_where(assignment, first)


def controlled_shutdown_leader(
    assignment: Int32s, isr: Int32s, registered: Bools, shutting_down: Bools
) -> Int32s:
    """Return the first assigned ISR member that is registered and not shutting down."""
    return first_where(assignment, registered & ~shutting_down & contains(isr, assignment))
