"""Who becomes leader: one vectorised function per strategy.

Source: Kafka 3.9's PartitionLeaderElectionAlgorithms and Election. All functions take the
assignment int32[n, R], the ISR int32[n, W] and masks shaped like the assignment, and return
int32[n] leaders, -1 where nobody can lead. They never look at a partition's state; the machine
does.

The mask `last` has the replicas on brokers of leader.deprioritized.list: each list of replicas is
read as if they stood at its end (KIP-491). One whose log ends last leads all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

import numpy as np

from state.decisions import Rule
from state.matrix import NONE, Bools, Int32s, among, contains, first_ids, first_where
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


def deprioritized(replicas: Int32s, ids: Sequence[int]) -> Bools:
    """Return the mask `last`, shaped like the replicas, for ids of brokers, ascending."""
    return among(replicas, np.array(ids, dtype=np.int32))


def preferred_replicas(assignment: Int32s, last: Bools) -> Int32s:
    """Return int32[n]: each partition's first replica, -1 where it has none."""
    return _first(assignment, assignment != NONE, last) if last.any() else first_ids(assignment)


def _first(assignment: Int32s, able: Bools, last: Bools) -> Int32s:
    """Return the first replica where the mask `able` holds."""
    if not last.any():
        return first_where(assignment, able)
    first = first_where(assignment, able & ~last)
    return np.where(first == NONE, first_where(assignment, able), first)


def new_partition_leader(assignment: Int32s, live: Bools, last: Bools) -> Int32s:
    """Return the first live assigned replica."""
    return _first(assignment, live, last)


def offline_leader(
    assignment: Int32s,
    isr: Int32s,
    live: Bools,
    last: Bools,
    *,
    unclean_allowed: Bools,
    longest: Int32s,
) -> tuple[Int32s, Bools]:
    """Return (leader, unclean bool[n]): the first live assigned replica in the ISR.

    Where there is none and unclean_allowed bool[n] holds, the replica of longest int32[n], where
    that is -1 the first live assigned replica, marked unclean.
    """
    clean = _first(assignment, live & contains(isr, assignment), last)
    others = np.where(longest != NONE, longest, _first(assignment, live, last))
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


def reassigned_leader(
    assignment: Int32s, isr: Int32s, live: Bools, last: Bools, target: Bools
) -> Int32s:
    """Return the first live ISR member among the replicas the reassignment ends with (target
    mask).
    """
    return _first(assignment, live & target & contains(isr, assignment), last)


def preferred_leader(
    assignment: Int32s, isr: Int32s, live: Bools, last: Bools, leader: Int32s
) -> Int32s:
    """Return the first assigned replica if it is live and in the ISR.

    If it is not, and the leader int32[n] is deprioritized, the first other one that is: who is to
    lead no more need not wait for a replica that is away.
    """
    able = live & contains(isr, assignment)
    preferred = preferred_replicas(assignment, last)
    chosen = first_where(assignment, able & (assignment == preferred[:, None]))
    leads_last = contains(np.where(last, assignment, NONE), leader[:, None])[:, 0]
    others = first_where(assignment, able & ~last)
    return np.where((chosen == NONE) & leads_last, others, chosen)


def controlled_shutdown_leader(
    assignment: Int32s, isr: Int32s, last: Bools, registered: Bools, shutting_down: Bools
) -> Int32s:
    """Return the first assigned ISR member that is registered and not shutting down."""
    able = registered & ~shutting_down & contains(isr, assignment)
    return _first(assignment, able, last)
