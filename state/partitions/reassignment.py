"""Moves partitions to other replicas (KafkaController.onPartitionReassignment).

A list in motion holds the replicas it ends with, in order, and behind them those that go; `adding`
and `removing` say which. It is complete when all replicas it ends with are in the ISR: the leader
moves if it has to, and the replicas that go are stopped and deleted. Everything here is done to
rows whose topic is not being deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from state.matrix import (
    NONE,
    Bools,
    Int32s,
    Rows,
    all_in_row,
    any_in_row,
    contains,
    keep,
    pad_rows,
    unpad,
)
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import have_states, move_partitions, move_replicas
from state.partitions.replica_lists import replace_replicas, settle_replicas
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER, Columns


@dataclass(frozen=True, slots=True)
class Motion:
    """A partition's replicas while it moves: all, and which of them come and go."""

    replicas: tuple[int, ...]
    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas it had before."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it ends with."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.removing)

    @property
    def in_progress(self) -> bool:
        """Whether replicas come or go."""
        return bool(self.adding or self.removing)

    def towards(self, target: Sequence[int]) -> Motion:
        """Return the motion from the same origin to another target
        (ReplicaAssignment.reassignTo).
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys([*target, *origin]))
        return Motion(
            replicas, frozenset(replicas) - frozenset(origin), frozenset(origin) - frozenset(target)
        )


def motion_of(rows: Columns, row: int) -> Motion:
    """Return how a row's replicas are moving."""
    replicas = rows.replicas[row]
    return Motion(
        tuple(unpad(replicas)),
        frozenset(replicas[rows.adding[row]].tolist()),
        frozenset(replicas[rows.removing[row]].tolist()),
    )


def begin_reassignments(slot: Slot, changes: Changes, at: Rows, motions: Sequence[Motion]) -> None:
    """Set the rows of one topic in motion, and bring them as far as they get at once.

    Replicas of an earlier motion that the new one has no use for are stopped and deleted; where one
    of them led, another one is elected.
    """
    if len(at) == 0:
        return
    rows = slot.table.rows
    topic = int(rows.topic[at[0]])
    slot.table.topics[topic].end_rejected = False
    changed = [motion_of(rows, row) != one for row, one in zip(at.tolist(), motions, strict=True)]
    lists = pad_rows([one.replicas for one in motions])
    present = rows.replicas[at]
    unneeded = (present != NONE) & ~contains(lists, present)
    _stop_and_delete(slot, changes, slot.table.spread(at, unneeded))
    _relist(changes, at, lists, motions)
    _start_leaders(slot, at)
    if any(changed):
        changes.rewrite_assignment(slot.authority, topic)
    _advance(slot, changes, at)
    lost = (changes.leader_before[at] != NO_LEADER) & (rows.leader[at] == NO_LEADER)
    move_partitions(slot, changes, at[lost], PartitionState.ONLINE, Strategy.OFFLINE)


def resume_reassignments(slot: Slot, changes: Changes, at: Rows) -> None:
    """Go on with what is in motion among rows: complete it, or tell its replicas again."""
    _advance(slot, changes, at[slot.table.rows.in_motion(at)])


def start_untold(slot: Slot, changes: Changes, at: Rows) -> None:
    """Start replicas of rows `at` as new whose first start may have been lost with a write, so that
    nobody was told of it.
    """
    rows = slot.table.rows
    at = at[slot.may_write(at)]
    untold = rows.adding[at] & (rows.replica_state[at] == ReplicaState.NEW)
    changes.is_new[at] |= any_in_row(untold & slot.online_replicas(at))


def complete_reassignments(slot: Slot, changes: Changes, at: Rows) -> None:
    """Complete what is in motion among rows and can be completed."""
    at = at[slot.table.rows.in_motion(at) & have_states(slot, changes, at)]
    if len(at):
        _finish(slot, changes, at[_done(slot, at)])


def hold_rejected_ends(slot: Slot, at: Rows) -> None:
    """Do not try to end what is in motion among rows `at` of one topic, whose znode ZooKeeper takes
    no write of: the topic would be read again, which tells its leaders, and their answers and ISRs
    would let it be tried again, without end.

    It is tried on the next occasion: `release_rejected_ends`, another request, or a read without
    the rejection.
    """
    rows = slot.table.rows
    moving = at[rows.in_motion(at) & rows.has_state[at]]
    for row in moving[_done(slot, moving)].tolist():
        slot.table.topics[int(rows.topic[row])].end_rejected = True


def release_rejected_ends(slot: Slot) -> None:
    """Let ends of reassignments that were rejected be tried again."""
    for topic in slot.table.topics:
        topic.end_rejected = False


def _relist(changes: Changes, at: Rows, lists: Int32s, motions: Sequence[Motion]) -> None:
    adding = contains(pad_rows([sorted(one.adding) for one in motions]), lists)
    removing = contains(pad_rows([sorted(one.removing) for one in motions]), lists)
    replace_replicas(changes, at, lists, adding, removing)


def _start_leaders(slot: Slot, at: Rows) -> None:
    """Begin to follow replicas that led rows `at` before they were listed: each of them runs
    already, so it is not new.
    """
    rows = slot.table.rows
    leads = (rows.replicas[at] == rows.leader[at][:, None]) & (rows.replicas[at] != NONE)
    leads &= rows.replica_state[at] == ReplicaState.NON_EXISTENT
    states = rows.replica_state[at]
    rows.replica_state[at] = np.where(leads, np.int8(ReplicaState.ONLINE), states)
    rows.state[at[any_in_row(leads) & slot.online_leader(at)]] = PartitionState.ONLINE


def _done(slot: Slot, at: Rows) -> Bools:
    """Return bool[k]: all replicas it ends with are in the ISR, and one of them can lead. An end
    that was rejected is held (`hold_rejected_ends`).

    What only gets another order, goes back to where it came from, or lets go of nobody but this
    node, which has no data, waits for nobody.
    """
    rows = slot.table.rows
    targets = rows.targets(at)
    in_sync = contains(rows.isr[at], rows.replicas[at])
    complete = all_in_row(in_sync | ~targets)
    can_lead = any_in_row(targets & in_sync & slot.online_replicas(at))
    hosted = rows.replicas[at] != slot.authority.controller_id
    waits_for_nobody = ~any_in_row(rows.adding[at] | rows.removing[at] & hosted)
    topics = slot.table.topics
    held = [topics[topic].end_rejected for topic in rows.topic[at].tolist()]
    done: Bools = (complete & can_lead | waits_for_nobody) & ~np.array(held, dtype=bool)
    return done


def _advance(slot: Slot, changes: Changes, at: Rows) -> None:
    if len(at) == 0:
        return
    known = have_states(slot, changes, at)
    _settle_stateless(slot, changes, at[~known])
    at = at[known]
    done = _done(slot, at)
    _start(slot, changes, at[~done])
    _finish(slot, changes, at[done])


def _start(slot: Slot, changes: Changes, at: Rows) -> None:
    """Tell all replicas of the motion, under a new leader epoch; those that come start.

    Those are new, so that a broker may create them on any disk
    (KafkaController.updateLeaderEpochAndSendRequest). One whose broker was away is so when that
    starts, as its first request says. One that started before is not: its broker may have come back
    in this batch with a failed disk, where the replica may be, and refuses it then. No replica of a
    row is new when one of those returns in this event (ReplicaStateMachine, to OnlineReplica).
    """
    rows = slot.table.rows
    at = at[slot.may_write(at)]
    adding = rows.adding[at]
    starting = adding & (rows.replica_state[at] == ReplicaState.NON_EXISTENT)
    move_replicas(slot, changes, slot.table.spread(at, starting), ReplicaState.NEW)
    changes.is_new[at] |= any_in_row(starting | adding & changes.started[at])
    returned = any_in_row(adding & changes.returned[at]) & ~changes.create[at]
    changes.is_new[at[returned]] = False
    changes.raise_leader_epoch(at, rows.replicas[at] != NONE)


def _finish(slot: Slot, changes: Changes, at: Rows) -> None:
    """Move the leader if it has to go, stop and delete the replicas that go."""
    if len(at) == 0:
        return
    rows = slot.table.rows
    coming = slot.table.spread(at, rows.adding[at])
    started = coming & (rows.replica_state != ReplicaState.NON_EXISTENT)
    move_replicas(slot, changes, coming & ~started, ReplicaState.NEW)
    move_replicas(slot, changes, coming, ReplicaState.ONLINE)
    _settle_leader(slot, changes, at)
    targets = keep(rows.replicas[at], rows.targets(at))
    _stop_and_delete(slot, changes, slot.table.spread(at, rows.removing[at]))
    settle_replicas(changes, at, targets)
    changes.metadata[at] = True
    changes.complete(at)


def _settle_leader(slot: Slot, changes: Changes, at: Rows) -> None:
    """Elect among the replicas that stay, or raise the leader epoch of a leader that stays."""
    rows = slot.table.rows
    led_by = contains(keep(rows.replicas[at], rows.targets(at)), rows.leader[at][:, None])
    stays: Bools = led_by[:, 0] & slot.online_leader(at)
    told = at[stays & slot.may_write(at)]
    changes.raise_leader_epoch(told, rows.targets(told))
    move_partitions(slot, changes, at[~stays], PartitionState.ONLINE, Strategy.REASSIGN)


def _stop_and_delete(slot: Slot, changes: Changes, mask: Bools) -> None:
    if mask.any():
        move_replicas(slot, changes, mask, ReplicaState.OFFLINE)
        move_replicas(slot, changes, mask, ReplicaState.DELETION_STARTED)
        move_replicas(slot, changes, mask, ReplicaState.DELETION_SUCCESSFUL)
        move_replicas(slot, changes, mask, ReplicaState.NON_EXISTENT)


def _settle_stateless(slot: Slot, changes: Changes, at: Rows) -> None:
    """Take partitions without data to where they are to go at once, and start them there if one
    of their replicas is live.
    """
    if len(at) == 0:
        return
    rows = slot.table.rows
    settle_replicas(changes, at, keep(rows.replicas[at], rows.targets(at)))
    absent = rows.replica_state[at] == ReplicaState.NON_EXISTENT
    fresh = slot.table.spread(at, (rows.replicas[at] != NONE) & absent)
    move_replicas(slot, changes, fresh, ReplicaState.NEW)
    waiting = at[rows.state[at] == PartitionState.NEW]
    move_partitions(slot, changes, waiting, PartitionState.ONLINE)
    move_replicas(slot, changes, fresh, ReplicaState.ONLINE)
    changes.complete(at)
