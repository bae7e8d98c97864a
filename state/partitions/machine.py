"""The partition and replica state machines: every move, made for many rows at once.

A move that `legal` does not list is refused: it is reported and changes nothing. A leader is
elected, and a replica taken out of an ISR, only here. What a row is told to be is taken by other
modules: states found in ZooKeeper (`states`), where loaded rows begin (`starting`), the ISR that
a leader asks for (`isr`), replica lists (`replica_lists`), leaders that were not listed before
(`reassignment`), and leader epochs that are raised alone (`epochs`). Sources: Kafka 3.9's
PartitionStateMachine, ReplicaStateMachine and Election; where Kafka writes a partition several
times in one event, one write holds the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from state.decisions import Rule
from state.matrix import (
    NONE,
    Bools,
    Int32s,
    Rows,
    any_in_row,
    contains,
    count_in_row,
    keep,
    lengths,
)
from state.partitions import election
from state.partitions.ballots import note_election
from state.partitions.changes import Changes
from state.partitions.election import RULE_OF, Strategy
from state.partitions.legal import (
    PartitionState,
    ReplicaState,
    legal_partition_moves,
    legal_replica_moves,
)
from state.partitions.refusals import RefusalReason
from state.partitions.removal_order import last_to_leave
from state.partitions.replica_lists import replace_replicas
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER


def move_partitions(
    slot: Slot,
    changes: Changes,
    at: Rows,
    target: PartitionState,
    strategy: Strategy = Strategy.OFFLINE,
) -> None:
    """Move partitions to a state; towards ONLINE a leader is chosen with the strategy."""
    if len(at) == 0:
        return
    rows = slot.table.rows
    legal = legal_partition_moves(rows.state[at], target)
    changes.refusals.add_partitions(at[~legal], target, RefusalReason.ILLEGAL_MOVE)
    at = at[legal]
    if target is not PartitionState.ONLINE:
        rows.state[at] = target
        return
    is_new = rows.state[at] == PartitionState.NEW
    if is_new.any():
        _initialise(slot, changes, at[is_new])
    if not is_new.all():
        _elect(slot, changes, at[~is_new], strategy)


def _initialise(slot: Slot, changes: Changes, at: Rows) -> None:
    rows = slot.table.rows
    live = slot.online_replicas(at)
    leader = election.new_partition_leader(rows.replicas[at], live, slot.deprioritized(at))
    led = leader != NO_LEADER
    note_election(slot, at, Rule.NEW_PARTITION_ELECTED, leader)
    changes.refusals.add_partitions(at[~led], PartitionState.ONLINE, RefusalReason.NO_LIVE_REPLICA)
    at, live = at[led], live[led]
    rows.leader[at] = leader[led]
    rows.leader_epoch[at] = 0
    rows.recovery[at] = 0
    slot.table.replace_isr(at, keep(rows.replicas[at], live))
    rows.state[at] = PartitionState.ONLINE
    changes.create[at] = True
    changes.is_new[at] = True
    changes.recipients[at] |= live
    changes.mark_written(at, Rule.NEW_PARTITION_ELECTED)


def _elect(slot: Slot, changes: Changes, at: Rows, strategy: Strategy) -> None:
    rows = slot.table.rows
    at = _readable(slot, changes, at, PartitionState.ONLINE)
    longest = changes.longest(at)
    found = _elected(slot, at, strategy, longest)
    led = found.leader != NO_LEADER
    note_election(
        slot,
        at,
        RULE_OF[strategy],
        found.leader,
        unclean=found.unclean,
        unclean_allowed=found.unclean_allowed,
        by_log_end=longest != NONE,
    )
    changes.ask_log_ends(at[found.waits])
    changes.refusals.add_partitions(at[~led], PartitionState.ONLINE, RefusalReason.NO_CANDIDATE)
    at, unclean = at[led], found.unclean[led]
    rows.leader[at] = found.leader[led]
    slot.table.replace_isr(at, found.isr[led])
    rows.state[at] = PartitionState.ONLINE
    if slot.config.leader_recovery:
        rows.recovery[at[unclean]] = 1
    changes.recipients[at] |= found.recipients[led]
    rule = np.where(unclean, Rule.UNCLEAN_ELECTED, RULE_OF[strategy]).astype(np.int8)
    changes.mark_written(at, rule)


def have_states(slot: Slot, changes: Changes, at: Rows) -> Bools:
    """Return bool[k]: row at[k] has a state, stored or made by these changes: one event may create
    a state as one broker starts, and go on as another bounces or leaves.
    """
    created: Bools = slot.table.rows.has_state[at] | changes.create[at]
    return created


def _readable(slot: Slot, changes: Changes, at: Rows, target: int) -> Rows:
    stored = have_states(slot, changes, at)
    ours = slot.may_write(at)
    changes.refusals.add_partitions(at[~stored], target, RefusalReason.NO_STATE)
    changes.refusals.add_partitions(at[stored & ~ours], target, RefusalReason.NEWER_CONTROLLER)
    return at[stored & ours]


@dataclass(frozen=True, slots=True)
class _Elected:
    """What an election in k rows comes to.

    leader int32[k]: NO_LEADER where nobody may lead. isr int32[k, W]. recipients bool[k, R]: who
    gets LeaderAndIsr. unclean bool[k]: the leader was not in the ISR. unclean_allowed bool[k]: it
    need not have been. waits bool[k]: somebody may lead, once it is known whose log ends last.
    """

    leader: Int32s
    isr: Int32s
    recipients: Bools
    unclean: Bools
    unclean_allowed: Bools
    waits: Bools


def _elected(slot: Slot, at: Rows, strategy: Strategy, longest: Int32s) -> _Elected:
    rows = slot.table.rows
    assignment, isr = rows.replicas[at], rows.isr[at]
    live, last = slot.online_replicas(at), slot.deprioritized(at)
    never = np.zeros(len(at), dtype=bool)
    match strategy:
        case Strategy.OFFLINE | Strategy.UNCLEAN:
            allowed = ~never if strategy is Strategy.UNCLEAN else slot.unclean_allowed(at)
            asks = slot.config.unclean_recovery and strategy is Strategy.OFFLINE
            unknown = allowed & (longest == NONE) & asks
            leader, unclean = election.offline_leader(
                assignment, isr, live, last, unclean_allowed=allowed & ~unknown, longest=longest
            )
            left = keep(isr, slot.online_members(at) & ~unclean[:, None])
            left[unclean, :1] = leader[unclean, None]
            waits = unknown & (leader == NO_LEADER) & any_in_row(live)
            return _Elected(leader, left, live, unclean, allowed, waits)
        case Strategy.REASSIGN:
            targets = rows.targets(at)
            leader = election.reassigned_leader(assignment, isr, live, last, targets)
            return _Elected(leader, isr, targets, never, never, never)
        case Strategy.PREFERRED:
            leader = election.preferred_leader(assignment, isr, live, last, rows.leader[at])
            return _Elected(leader, isr, assignment != NONE, never, never, never)
        case Strategy.CONTROLLED_SHUTDOWN:
            registered = slot.registered_replicas(at)
            shutting_down = slot.brokers.is_shutting_down(assignment)
            leader = election.controlled_shutdown_leader(
                assignment, isr, last, registered, shutting_down
            )
            left = keep(isr, ~slot.brokers.is_shutting_down(isr))
            return _Elected(leader, left, registered, never, never, never)


def move_replicas(slot: Slot, changes: Changes, mask: Bools, target: ReplicaState) -> None:
    """Move the replicas in mask bool[n, R] to a state, with what brokers must be told about it."""
    at = np.flatnonzero(any_in_row(mask))
    if len(at) == 0:
        return
    asked = mask[at]
    legal = legal_replica_moves(slot.table.rows.replica_state[at], target)
    changes.refusals.add_replicas(at, asked & ~legal, target, RefusalReason.ILLEGAL_MOVE)
    granted = asked & legal
    moved = any_in_row(granted)
    _REPLICA_MOVES[target](slot, changes, at[moved], granted[moved])


def _set_states(slot: Slot, at: Rows, mask: Bools, state: ReplicaState) -> None:
    """Set the states of the replicas in mask bool[k, R] of rows `at`."""
    states = slot.table.rows.replica_state
    states[at] = np.where(mask, np.int8(state), states[at])


def _to_new(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    rows = slot.table.rows
    led = rows.has_state[at][:, None]
    leads = mask & (rows.replicas[at] == rows.leader[at][:, None]) & led
    changes.refusals.add_replicas(at, leads, ReplicaState.NEW, RefusalReason.WOULD_LEAD)
    mask = mask & ~leads
    started = _start_replicas(changes, at, mask & led)
    changes.is_new[started] = True
    _set_states(slot, at, mask, ReplicaState.NEW)


def _to_online(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    rows = slot.table.rows
    new = rows.replica_state[at] == ReplicaState.NEW
    changes.started[at] |= mask & new
    changes.returned[at] |= mask & ~new
    told = mask & ~new & have_states(slot, changes, at)[:, None]
    started = _start_replicas(changes, at, told)
    changes.rule[started[changes.rule[started] == Rule.NONE]] = Rule.REPLICA_STARTED
    _set_states(slot, at, mask, ReplicaState.ONLINE)


def _start_replicas(changes: Changes, at: Rows, told: Bools) -> Rows:
    """Send LeaderAndIsr to replicas in mask bool[k, R] of rows `at`; return the rows with one."""
    changes.recipients[at] |= told
    started = at[any_in_row(told)]
    changes.metadata[started] = True
    return started


def _to_offline(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    changes.stop[at] |= mask
    known = have_states(slot, changes, at)
    stored = at[known]
    changes.metadata[stored] = True
    changes.rule[stored[changes.rule[stored] == Rule.NONE]] = Rule.REPLICA_STOPPED
    ours = slot.may_write(stored)
    changes.refusals.add_partitions(
        stored[~ours], PartitionState.OFFLINE, RefusalReason.NEWER_CONTROLLER
    )
    _remove_from_isr(slot, changes, stored[ours], mask[known][ours])
    _set_states(slot, at, mask, ReplicaState.OFFLINE)


def _remove_from_isr(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    """Take replicas in mask bool[k, R] of rows `at` out of the ISRs; the last member stays, a
    leader among them is lost.
    """
    rows = slot.table.rows
    gone = np.where(mask, rows.replicas[at], NONE)
    leaving_isr = contains(gone, rows.isr[at])
    hit = any_in_row(leaving_isr)
    changes.recipients[at] |= (rows.replicas[at] != NONE) & ~mask
    at, gone, leaving_isr = at[hit], gone[hit], leaving_isr[hit]
    isr = rows.isr[at]
    emptied = lengths(isr) == count_in_row(leaving_isr)
    stays = emptied[:, None] & (isr == last_to_leave(isr)[:, None])
    lost = contains(gone, rows.leader[at][:, None])[:, 0]
    slot.table.replace_isr(at, keep(isr, (isr != NONE) & (~leaving_isr | stays)))
    rows.leader[at[lost]] = NO_LEADER
    changes.mark_written(
        at, np.where(lost, Rule.LEADER_LOST, Rule.REPLICA_LEFT_ISR).astype(np.int8)
    )


def _to_deletion_started(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    changes.stop[at] |= mask
    changes.stop_delete[at] |= mask
    _set_states(slot, at, mask, ReplicaState.DELETION_STARTED)


def _to_deletion_successful(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    _set_states(slot, at, mask, ReplicaState.DELETION_SUCCESSFUL)


def _to_deletion_ineligible(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    _set_states(slot, at, mask, ReplicaState.DELETION_INELIGIBLE)


def _to_non_existent(slot: Slot, changes: Changes, at: Rows, mask: Bools) -> None:
    """Drop the replicas from their assignments."""
    rows = slot.table.rows
    lists = keep(rows.replicas[at], ~mask)
    adding = contains(keep(rows.replicas[at], rows.adding[at]), lists)
    removing = contains(keep(rows.replicas[at], rows.removing[at]), lists)
    replace_replicas(changes, at, lists, adding, removing)


_REPLICA_MOVES = {
    ReplicaState.NEW: _to_new,
    ReplicaState.ONLINE: _to_online,
    ReplicaState.OFFLINE: _to_offline,
    ReplicaState.DELETION_STARTED: _to_deletion_started,
    ReplicaState.DELETION_SUCCESSFUL: _to_deletion_successful,
    ReplicaState.DELETION_INELIGIBLE: _to_deletion_ineligible,
    ReplicaState.NON_EXISTENT: _to_non_existent,
}
