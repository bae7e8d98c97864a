"""Preferred-leader balance, decided over all slots without one slot knowing another.

A broker's share is of the partitions whose replica lists it begins: one that is deprioritized is
out of balance until others lead all of them, and one that no longer is, until it has them back.

Two steps through the log. When the timer is due each slot reports, per broker, how many partitions
prefer it and how many of those another broker leads, and proposes which could be given back; the
sink adds the reports up and appends the sums with the proposals as an event. On that event every
machine finds the same next step (`state.cluster.leader_rebalance`), and each slot elects for its
part.
"""

from __future__ import annotations

import numpy as np

from state.blocks import encode_block
from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER, take_step
from state.decisions import Decision, DecisionKind
from state.events import Event
from state.matrix import NONE, Bools, Int32s, Rows, contains, first_ids
from state.merge import first_of_brokers, merge_blocks
from state.partitions import election
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.event_blocks import topic_column
from state.partitions.legal import PartitionState
from state.partitions.machine import move_partitions
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER
from state.payloads.controller import TimerDue
from state.payloads.partitions import LeaderImbalanceReported


def on_timer_due(slot: Slot, event: Event, due: TimerDue) -> list[Decision]:
    """Report this slot's share of the leader imbalance when the rebalance timer is due."""
    if due.timer != LEADER_REBALANCE_TIMER or not slot.authority.is_active:
        return []
    rows = slot.table.rows
    counted = ~slot.table.in_deletion()
    first = np.where(counted, first_ids(rows.replicas), NONE)
    behind = _out_of_sync(slot) if slot.config.rebalance_sync_wait_ms else None
    brokers = np.unique(first[first != NONE])
    if behind is not None:
        brokers = np.union1d(brokers, behind)
    if len(brokers) == 0:
        return []
    preferred = preferred_replicas(slot, np.arange(len(rows)))
    not_preferred = first[rows.has_state & counted & (rows.leader != preferred)]
    columns = {
        "broker": brokers,
        "preferred": _counts(brokers, first),
        "imbalanced": _counts(brokers, not_preferred),
    }
    if behind is not None:
        columns["behind"] = _counts(brokers, behind)
    report = Decision(event.offset, DecisionKind.REPORT_IMBALANCE, encode_block(columns, {}))
    return [*_proposals(slot, event), report]


def _out_of_sync(slot: Slot) -> Int32s:
    """Return int32[k]: the brokers of replicas that could be in sync and are not, but for those
    that a reassignment adds: they were never in sync.
    """
    rows = slot.table.rows
    at = np.flatnonzero(rows.has_state & ~slot.table.in_deletion() & (rows.leader != NO_LEADER))
    replicas = rows.replicas[at]
    could_be = slot.online_replicas(at) & ~rows.adding[at]
    out_of_sync: Int32s = replicas[could_be & ~contains(rows.isr[at], replicas)]
    return out_of_sync


def _proposals(slot: Slot, event: Event) -> list[Decision]:
    """Propose elections, of each broker one more than fit into a step: that shows whether more are
    left.
    """
    at = np.flatnonzero(_may_move(slot))
    if len(at) == 0:
        return []
    topic, extra = topic_column(slot.table, at)
    extra["rows_per_broker"] = slot.config.rebalance_partitions_max + 1
    columns = {
        "topic": topic,
        "partition": slot.table.rows.partition[at],
        "broker": first_ids(slot.table.rows.replicas)[at],
    }
    body = first_of_brokers(merge_blocks([encode_block(columns, extra)]))
    return [Decision(event.offset, DecisionKind.PROPOSE_ELECTIONS, body)]


def preferred_replicas(slot: Slot, at: Rows) -> Int32s:
    """Return int32[k]: the replica that each of the rows prefers, -1 where it has none."""
    return election.preferred_replicas(slot.table.rows.replicas[at], slot.deprioritized(at))


def _counts(
    brokers: Int32s,
    values: Int32s,
) -> Int32s:
    values = values[values != NONE]
    return np.bincount(np.searchsorted(brokers, values), minlength=len(brokers)).astype(np.int32)


def on_leader_imbalance_reported(
    slot: Slot, event: Event, report: LeaderImbalanceReported
) -> list[Decision]:
    """Elect preferred replicas for this slot's part of the next step."""
    if not slot.authority.is_active:
        return []
    step = take_step(slot.config, slot.authority, report, event.time_ms)
    at = slot.table.find_all(step.elections)
    at = np.sort(at[at >= 0])
    changes = Changes.about_cluster(slot.table, event.offset)
    at = at[_may_move(slot)[at]]
    move_partitions(slot, changes, at, PartitionState.ONLINE, Strategy.PREFERRED)
    return changes.finish(slot.authority, slot.brokers)


def _may_move(slot: Slot) -> Bools:
    """Return bool[n]: a preferred election would give the partition another leader."""
    rows = slot.table.rows
    everything = np.arange(len(rows))
    chosen = election.preferred_leader(
        rows.replicas,
        rows.isr,
        slot.online_replicas(everything),
        slot.deprioritized(everything),
        rows.leader,
    )
    ready: Bools = (
        (chosen != NONE) & (chosen != rows.leader) & rows.has_state & ~slot.table.in_deletion()
    )
    return ready
