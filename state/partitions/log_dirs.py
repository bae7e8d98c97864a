"""Replicas on failed log directories."""

from __future__ import annotations

from state.decisions import Decision, Rule
from state.events import Event
from state.matrix import any_in_row
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.cluster_events import fail_replicas
from state.partitions.legal import ReplicaState
from state.partitions.reassignment import complete_reassignments
from state.partitions.slot import Slot
from state.payloads.brokers import LogDirFailureNotified
from state.payloads.partitions import LeaderAndIsrAnswered
from state.protocol_errors import ProtocolError


def on_log_dir_failure_notified(
    slot: Slot, event: Event, notified: LogDirFailureNotified
) -> list[Decision]:
    """Ask the brokers for the state of their replicas by sending LeaderAndIsr for all that are
    online.

    Source: KafkaController.processLogDirEventNotification; the answers say which replicas failed.
    """
    if not slot.authority.is_active:
        return []
    rows = slot.table.rows
    changes = Changes.about_cluster(slot.table, event.offset)
    asked = slot.hosted_by(notified.broker_ids)
    asked &= slot.brokers.registered(rows.replicas) & (rows.replica_state == ReplicaState.ONLINE)
    changes.recipients |= asked & rows.has_state[:, None]
    changes.rule[any_in_row(changes.recipients)] = Rule.REPLICA_STARTED
    return changes.finish(slot.authority, slot.brokers)


def on_leader_and_isr_answered(
    slot: Slot, event: Event, answered: LeaderAndIsrAnswered
) -> list[Decision]:
    """Fail the replicas that answered KAFKA_STORAGE_ERROR, clear those that answered without an
    error.

    Source: KafkaController.processLeaderAndIsrResponseReceived.
    """
    if (
        not slot.authority.is_active
        or slot.brokers.epoch(answered.broker_id) != answered.broker_epoch
    ):
        return []
    rows = slot.table.rows
    at = slot.table.find(answered.topic, answered.partitions)
    hosted = slot.hosted_by([answered.broker_id])
    failed_at = at[(answered.errors == ProtocolError.KAFKA_STORAGE_ERROR) & (at >= 0)]
    healthy_at = at[(answered.errors == ProtocolError.NONE) & (at >= 0)]
    failed = slot.table.spread(failed_at, hosted[failed_at])
    healthy = slot.table.spread(healthy_at, hosted[healthy_at])
    newly_failed = failed & ~rows.offline_dir
    rows.offline_dir[healthy] = False
    rows.offline_dir[failed] = True
    changes = Changes.about_topics(slot.table, {answered.topic: event.offset})
    if newly_failed.any():
        fail_replicas(slot, changes, newly_failed, slot.table.rows_of(answered.topic))
    complete_reassignments(slot, changes, slot.table.rows_of(answered.topic))
    return deletion.finish_with_deletions(slot, changes)
