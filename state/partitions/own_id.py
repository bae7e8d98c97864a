"""Assignments of observed topics that name this node, which hosts nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from state.cluster.authority import Phase
from state.matrix import (
    NONE,
    Bools,
    Int32s,
    Rows,
    any_in_row,
    contains,
    keep,
    lengths,
    unpad,
    unpad_rows,
    widen,
)
from state.partitions.changes import Changes
from state.partitions.legal import ReplicaState
from state.partitions.machine import move_replicas
from state.partitions.reassignment import begin_reassignments, motion_of
from state.partitions.replica_lists import settle_replicas
from state.partitions.rows import observed_columns
from state.partitions.slot import Slot
from state.partitions.table import Columns
from state.payloads.topics import TopicObserved


def without_controller(slot: Slot, observed: TopicObserved) -> tuple[Int32s, bool]:
    """Return (replicas int32[n, R], whether anything changed): our own id taken out of the
    assignment.

    A broker that creates a topic by itself draws replicas from its metadata, which lists us. The
    place goes to a registered broker that is not in the list yet; with none left it is dropped, and
    so it is where we are to be removed: where a leader was told of us, by a reassignment
    (`observed_rows`). A list of nobody else waits for a broker (`repair_waiting`). A topic that
    cannot be written stays as it is.
    """
    replicas = observed.replicas.copy()
    ours = replicas == slot.authority.controller_id
    if observed.unwritable or not ours.any():
        return replicas, False
    going = ours & contains(observed.removing, replicas)
    racks = slot.brokers.racks
    replicas[going] = NONE
    for row in np.flatnonzero(any_in_row(ours & ~going)).tolist():
        instead = _instead(racks, unpad(replicas[row]), int(observed.partitions[row]))
        replicas[row, ours[row]] = NONE if instead is None else instead
    dropped = any_in_row(ours & (replicas == NONE))
    kept = ~any_in_row(replicas != NONE) | (dropped & _is_told_of_us(slot, observed))
    replicas[kept] = observed.replicas[kept]
    repaired = any_in_row(ours) & ~kept
    packed = keep(replicas, replicas != NONE)
    return _as_repaired_before(slot, observed, packed, repaired), bool(repaired.any())


def _is_told_of_us(slot: Slot, observed: TopicObserved) -> Bools:
    """Return bool[n]: another controller has told the partition's leader of us, and nothing but our
    going raises the leader epoch.

    One that is known already was told of without us, or is repaired by `repair_held`.
    """
    listed = observed.replicas
    moving = contains(observed.adding, listed) | contains(observed.removing, listed)
    others_move = any_in_row(moving & (listed != slot.authority.controller_id))
    is_new = slot.table.find(observed.topic, observed.partitions) < 0
    is_new |= slot.authority.phase is Phase.LOADING
    told: Bools = observed.states.present & ~others_move & is_new
    return told


def repair_waiting(slot: Slot, changes: Changes) -> None:
    """Give partitions that list nobody but us, and so never had a leader, a registered broker: when
    their topic was observed there was none.
    """
    rows = slot.table.rows
    ours = any_in_row(rows.replicas == slot.authority.controller_id)
    at = np.flatnonzero(ours & (lengths(rows.replicas) == 1) & ~rows.has_state)
    racks = slot.brokers.racks
    if not len(at) or not racks.keys() - {slot.authority.controller_id}:
        return
    listed = zip(unpad_rows(rows.replicas[at]), rows.partition[at].tolist(), strict=True)
    lists = np.array([[_instead(racks, *one)] for one in listed], dtype=np.int32)
    settle_replicas(changes, at, lists)
    move_replicas(slot, changes, slot.table.spread(at, rows.replicas[at] != NONE), ReplicaState.NEW)
    for topic in np.unique(rows.topic[at]).tolist():
        changes.rewrite_assignment(slot.authority, topic)


def _instead(racks: Mapping[int, str | None], replicas: list[int], partition: int) -> int | None:
    """Return the broker that takes our place in a list, None when there is no other; racks: those
    of registered brokers.

    One in a rack that the list does not use yet goes first. One that is shutting down will do, as
    for a new topic. It is picked by partition so that repaired lists spread.
    """
    free = [id_ for id_ in racks if id_ not in replicas]
    used = {None, *(racks.get(id_) for id_ in replicas)}
    best = [id_ for id_ in free if racks[id_] not in used] or free
    return best[partition % len(best)] if best else None


def observed_rows(
    slot: Slot, observed: TopicObserved, replicas: Int32s, topic: int, *, repaired: bool
) -> Columns:
    """Return the rows of an observed topic; where a leader was told of us, who takes our place
    comes, and we go, as by a reassignment.

    replicas int32[n, R], repaired: as `without_controller` returns them. topic: its index.
    """
    columns = observed_columns(observed, replicas, topic)
    if repaired:
        columns.adding |= _added_for_own_id(observed, replicas)
    ours = _own_id_to_remove(slot, observed, replicas)
    columns.adding &= ~ours
    columns.removing |= ours
    return columns


def _added_for_own_id(observed: TopicObserved, replicas: Int32s) -> Bools:
    """Return bool[n, R]: the replica took our place in a partition that has a state, so it is to be
    added as by a reassignment.

    The leader was told of us by another controller. It ignores what comes with the leader epoch it
    knows (ReplicaManager.becomeLeaderOrFollower), and refuses a replica it was not told of.
    """
    known = contains(observed.replicas, replicas) | contains(observed.states.isr, replicas)
    added: Bools = observed.states.present[:, None] & (replicas != NONE) & ~known
    return added


def _own_id_to_remove(slot: Slot, observed: TopicObserved, replicas: Int32s) -> Bools:
    """Return bool[n, R]: our place among replicas, which is to be removed as by a reassignment.

    A leader that was told of us hears so with a higher epoch: with the one it knows it would keep
    us in its assignment, and count us among those that are not in sync.
    """
    ours = replicas == slot.authority.controller_id
    others = any_in_row((replicas != NONE) & ~ours)
    to_remove: Bools = ours & (observed.states.present & others)[:, None]
    return to_remove & (not observed.unwritable)


def held_unrepaired(slot: Slot, at: Rows, columns: Columns) -> Bools:
    """Return bool[k]: rows `at` list us, columns do not: their topic could not be written when it
    was observed before, and now it can.
    """
    own = slot.authority.controller_id
    held = any_in_row(slot.table.rows.replicas[at] == own)
    unrepaired: Bools = held & ~any_in_row(columns.replicas == own)
    return unrepaired


def repair_held(slot: Slot, changes: Changes, at: Rows, columns: Columns, late: Bools) -> None:
    """Bring rows `at` of one topic where `late` bool[k] holds from lists with us to those of
    columns, as a reassignment does; in a deletion they stay as they are.

    Whoever we did not hold comes, also where somebody else has put it there: it was never started.
    """
    late = late & ~slot.table.in_deletion()[at]
    rows = slot.table.rows
    come = (columns.replicas != NONE) & ~contains(rows.replicas[at], columns.replicas)
    columns.adding |= come & (late & rows.has_state[at])[:, None]
    motions = [motion_of(columns, row) for row in np.flatnonzero(late).tolist()]
    begin_reassignments(slot, changes, at[late], motions)


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
    held = slot.table.rows.replicas[at]
    before &= ~any_in_row(held == slot.authority.controller_id)
    replicas = widen(replicas, held.shape[1])
    replicas[before] = widen(held, replicas.shape[1])[before]
    return replicas
