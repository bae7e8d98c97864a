"""Controlled shutdown of a broker, and the check whether its partitions can do without it.

With the check two steps go through the log: each slot reports the partitions that would be left
with too few replicas in sync, the sink appends all of them as an event, and every slot acts on
whether there were any.
"""

from __future__ import annotations

import numpy as np

from state.blocks import encode_block
from state.cluster.shutdowns import checks_shutdown, is_outdated, shutdown_error
from state.decisions import Decision, DecisionKind
from state.events import Event
from state.matrix import Bools, Rows, any_in_row, count_in_row, lengths
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.event_blocks import topic_column
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import move_partitions, move_replicas
from state.partitions.refusals import RefusalReason
from state.partitions.slot import Slot
from state.payloads.brokers import (
    ControlledShutdownAllowed,
    ControlledShutdownChecked,
    ControlledShutdownRequested,
)


def on_controlled_shutdown_requested(
    slot: Slot, event: Event, request: ControlledShutdownRequested
) -> list[Decision]:
    """Relieve the broker, or report first which of its partitions are at risk."""
    if not _may_shut_down(slot, request):
        return []
    if not checks_shutdown(slot.config, slot.brokers, request.broker_id):
        return _relieve(slot, event, request.broker_id)
    at = np.flatnonzero(_at_risk(slot, request.broker_id))
    return _listed(slot, event, DecisionKind.REPORT_AT_RISK, at)


def on_controlled_shutdown_checked(
    slot: Slot, event: Event, checked: ControlledShutdownChecked
) -> list[Decision]:
    """Relieve the broker if nothing is at risk; else move nothing and report what is.

    With other live brokers than when it was checked it is checked again: two that ask at the same
    time may each be enough for the other only.
    """
    if not _may_shut_down(slot, checked.request):
        return []
    if is_outdated(slot.brokers, checked):
        return on_controlled_shutdown_requested(slot, event, checked.request)
    if not checked.at_risk:
        return _relieve(slot, event, checked.request.broker_id)
    changes = Changes.about_cluster(slot.table, event.offset)
    mask = slot.hosted_by([checked.request.broker_id])
    mask &= np.isin(np.arange(len(mask)), _named(slot, checked.at_risk))[:, None]
    at = np.flatnonzero(any_in_row(mask))
    changes.refusals.add_replicas(
        at, mask[at], ReplicaState.OFFLINE, RefusalReason.BELOW_MIN_INSYNC
    )
    found = changes.finish(slot.authority, slot.brokers)
    return [*found, *_listed(slot, event, DecisionKind.REPORT_REMAINING, at)]


def on_controlled_shutdown_allowed(
    slot: Slot, event: Event, allowed: ControlledShutdownAllowed
) -> list[Decision]:
    """Check nothing when this broker asks for a shutdown."""
    slot.brokers.allow_shutdown(allowed.broker_id)
    return []


def _may_shut_down(slot: Slot, request: ControlledShutdownRequested) -> bool:
    return shutdown_error(slot.authority, slot.brokers, request) is None


def _movable(slot: Slot, broker_id: int) -> Bools:
    """Return bool[n]: the broker has a replica, others have too, and the partition is in use."""
    rows = slot.table.rows
    several = any_in_row(slot.hosted_by([broker_id])) & (lengths(rows.replicas) > 1)
    movable: Bools = several & rows.has_state & ~slot.table.in_deletion()
    return movable


def _at_risk(slot: Slot, broker_id: int) -> Bools:
    """Return bool[n]: the broker is in sync, and too few others that go on are."""
    isr = slot.table.rows.isr
    staying = slot.online_members(np.arange(len(isr))) & (isr != broker_id)
    too_few = count_in_row(staying) < slot.min_insync_replicas()
    at_risk: Bools = _movable(slot, broker_id) & any_in_row(isr == broker_id) & too_few
    return at_risk


def _named(slot: Slot, partitions: tuple[tuple[str, int], ...]) -> Rows:
    """Return the rows of [topic, partition] pairs; -1 for those of other slots."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return slot.table.find_all(by_topic)


def _relieve(slot: Slot, event: Event, broker_id: int) -> list[Decision]:
    """Move leaders off the broker and take it out of ISRs (KafkaController.doControlledShutdown).

    Partitions with one replica are left alone. What it still leads afterwards is reported as
    remaining.
    """
    slot.brokers.start_shutdown(broker_id)
    rows = slot.table.rows
    changes = Changes.about_cluster(slot.table, event.offset)
    movable = _movable(slot, broker_id)
    leads = rows.leader == broker_id
    move_partitions(
        slot,
        changes,
        np.flatnonzero(movable & leads),
        PartitionState.ONLINE,
        Strategy.CONTROLLED_SHUTDOWN,
    )
    followed = slot.hosted_by([broker_id]) & (movable & ~leads)[:, None]
    move_replicas(slot, changes, followed, ReplicaState.OFFLINE)
    found = changes.finish(slot.authority, slot.brokers)
    remaining = np.flatnonzero(movable & (rows.leader == broker_id))
    return [*found, *_listed(slot, event, DecisionKind.REPORT_REMAINING, remaining)]


def _listed(slot: Slot, event: Event, kind: DecisionKind, at: Rows) -> list[Decision]:
    if len(at) == 0:
        return []
    topic, extra = topic_column(slot.table, at)
    block = encode_block({"topic": topic, "partition": slot.table.rows.partition[at]}, extra)
    return [Decision(event.offset, kind, block)]
