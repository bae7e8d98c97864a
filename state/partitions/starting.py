"""How rows begin: those of partitions that are new, and those that were loaded."""

from __future__ import annotations

import numpy as np

from state.matrix import NONE, Rows, any_in_row
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.machine import move_partitions, move_replicas
from state.partitions.slot import Slot


def create_partitions(slot: Slot, changes: Changes, at: Rows) -> None:
    """Take rows that exist nowhere yet to ONLINE (KafkaController.onNewPartitionCreation)."""
    if len(at) == 0:
        return
    mask = slot.table.spread(at, slot.table.rows.replicas[at] != NONE)
    move_partitions(slot, changes, at, PartitionState.NEW)
    move_replicas(slot, changes, mask, ReplicaState.NEW)
    move_partitions(slot, changes, at, PartitionState.ONLINE)
    move_replicas(slot, changes, mask, ReplicaState.ONLINE)


def start_rows(slot: Slot, changes: Changes, at: Rows) -> None:
    """Give loaded rows their initial states, then let both machines act on them.

    A replica starts ONLINE or, when it is not online, DELETION_INELIGIBLE; a partition ONLINE or
    OFFLINE by its leader, NEW when it never had one. A leader that is shutting down counts as
    online.
    """
    if len(at) == 0:
        return
    rows = slot.table.rows
    assigned = rows.replicas[at] != NONE
    online = slot.online_replicas(at) | slot.shutting_down_leaders(at)
    states = np.where(online, ReplicaState.ONLINE, ReplicaState.DELETION_INELIGIBLE)
    rows.replica_state[at] = np.where(assigned, states, ReplicaState.NON_EXISTENT)
    move_replicas(slot, changes, slot.table.spread(at, online), ReplicaState.ONLINE)
    offline = slot.table.spread(at, assigned & ~online)
    move_replicas(slot, changes, offline, ReplicaState.OFFLINE)
    led = np.where(slot.is_led(at), PartitionState.ONLINE, PartitionState.OFFLINE)
    rows.state[at] = np.where(rows.has_state[at], led, PartitionState.NEW)
    elect_offline(slot, changes, at)
    elect_for_shutting_down(slot, changes, at)


def elect_offline(slot: Slot, changes: Changes, at: Rows) -> None:
    """Try to elect for the NEW and OFFLINE partitions among rows `at` that are not being deleted
    (PartitionStateMachine.triggerOnlinePartitionStateChange).
    """
    at = at[~slot.table.in_deletion()[at]]
    state = slot.table.rows.state[at]
    waiting = (state == PartitionState.NEW) | (state == PartitionState.OFFLINE)
    move_partitions(slot, changes, at[waiting], PartitionState.ONLINE)


def elect_for_shutting_down(slot: Slot, changes: Changes, at: Rows) -> None:
    """Try to elect for those of rows `at` whose leader is shutting down; where nobody else in sync
    can lead it goes on (KafkaController.doControlledShutdown).
    """
    at = at[any_in_row(slot.shutting_down_leaders(at)) & ~slot.table.in_deletion()[at]]
    move_partitions(slot, changes, at, PartitionState.ONLINE, Strategy.CONTROLLED_SHUTDOWN)
