"""Assignments of observed topics that name this node, which hosts nothing."""

from __future__ import annotations

import numpy as np

from state.matrix import NONE, Bools, Int32s, any_in_row, contains, keep, widen
from state.partitions.slot import Slot
from state.payloads.topics import TopicObserved


def without_controller(slot: Slot, observed: TopicObserved) -> tuple[Int32s, bool]:
    """Return (replicas int32[n, R], whether anything changed): our own id taken out of the
    assignment.

    A broker that creates a topic by itself draws replicas from its metadata, which lists us. The
    place goes to a live broker that is not in the list yet, picked by partition so that repaired
    lists spread; with none left it is dropped. A topic that cannot be written stays as it is.
    """
    replicas = observed.replicas.copy()
    ours = replicas == slot.authority.controller_id
    if observed.unwritable or not ours.any():
        return replicas, False
    candidates = slot.brokers.live_ids
    for row in np.flatnonzero(any_in_row(ours)).tolist():
        free = candidates[~np.isin(candidates, replicas[row])]
        free = free[free != slot.authority.controller_id]
        if len(free):
            replicas[row, ours[row]] = free[int(observed.partitions[row]) % len(free)]
    mask = (replicas != slot.authority.controller_id) & (replicas != NONE)
    return _as_repaired_before(slot, observed, keep(replicas, mask), any_in_row(ours)), True


def joining(observed: TopicObserved, replicas: Int32s) -> Bools:
    """Return bool[n, R]: the replica took our place in a partition that has a state, so it is to be
    added as by a reassignment.

    The leader was told of us by another controller. It ignores what comes with the leader epoch it
    knows (ReplicaManager.becomeLeaderOrFollower), and refuses a replica it was not told of.
    """
    known = contains(observed.replicas, replicas) | contains(observed.states.isr, replicas)
    joins: Bools = observed.states.present[:, None] & (replicas != NONE) & ~known
    return joins


def _as_repaired_before(
    slot: Slot, observed: TopicObserved, replicas: Int32s, repaired: Bools
) -> Int32s:
    """Return the replicas, those of partitions that were repaired before as they were then: their
    rewritten assignment is on its way, whoever is live by now.
    """
    at = slot.table.find(observed.topic, observed.partitions)
    before = repaired & (at >= 0)
    if not before.any():
        return replicas
    held = slot.table.rows.replicas[at[before]]
    replicas = widen(replicas, held.shape[1])
    replicas[before] = widen(held, replicas.shape[1])
    return replicas
