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
from state.payloads.log_ends import LogEnds


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

_BELOW_ALL = -2


def new_partition_leader(assignment: Int32s, live: Bools) -> Int32s:
    """Return the first live assigned replica."""
    return first_where(assignment, live)


def offline_leader(
    assignment: Int32s, isr: Int32s, live: Bools, unclean_allowed: Bools, longest: Int32s
) -> tuple[Int32s, Bools]:
    """Return (leader, unclean bool[n]): the first live assigned replica in the ISR.

    Where there is none and unclean_allowed bool[n] holds, the replica of longest int32[n], where
    that is -1 the first live assigned replica, marked unclean.
    """
    clean = first_where(assignment, live & contains(isr, assignment))
    others = np.where(longest != NONE, longest, first_where(assignment, live))
    unclean = (clean == NONE) & unclean_allowed & (others != NONE)
    return np.where(unclean, others, clean), unclean


def longest_log(assignment: Int32s, live: Bools, logs: LogEnds) -> Int32s:
    """Return the live assigned replica whose log ends last, by its last leader epoch before its end
    offset; of several the first that is named (KIP-966, Unclean Recovery).
    """
    stands = contains(np.where(live, assignment, NONE), logs.replicas)
    for column in (logs.last_epochs, logs.ends):
        best = np.where(stands, column, _BELOW_ALL).max(axis=1, keepdims=True, initial=_BELOW_ALL)
        stands &= column == best
    return first_where(logs.replicas, stands)


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
