"""Which function of a slot folds which payload: the slot's table of stimuli."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state import admin_payloads, control_payloads, deletion_payloads, payloads
from state.decisions import Decision
from state.events import Event
from state.partitions import (
    admin_elections,
    balance,
    creation,
    deletion_events,
    epochs,
    growth,
    isr,
    log_dirs,
    membership,
    reassignment_requests,
    shutdown,
    states,
    topics,
)
from state.partitions.slot import Slot

SLOT_HANDLERS: Mapping[type[Any], Callable[[Slot, Event, Any], list[Decision]]] = {
    payloads.ControllerElected: membership.on_controller_elected,
    payloads.ControllerResigned: membership.on_controller_resigned,
    payloads.ResyncCompleted: membership.on_resync_completed,
    payloads.BrokerRegistrationsChanged: membership.on_broker_registrations_changed,
    payloads.ControlledShutdownRequested: shutdown.on_controlled_shutdown_requested,
    control_payloads.ControlledShutdownChecked: shutdown.on_controlled_shutdown_checked,
    control_payloads.ControlledShutdownAllowed: shutdown.on_controlled_shutdown_allowed,
    control_payloads.ControllerPaused: membership.on_controller_paused,
    control_payloads.ControllerResumed: membership.on_controller_resumed,
    payloads.ClusterConfigChanged: membership.on_cluster_config_changed,
    payloads.TopicObserved: topics.on_topic_observed,
    payloads.TopicRemoved: topics.on_topic_removed,
    payloads.TopicConfigChanged: topics.on_topic_config_changed,
    payloads.PartitionStatesObserved: states.on_partition_states_observed,
    payloads.CreateTopicRequested: creation.on_create_topic_requested,
    deletion_payloads.TopicDeletionRequested: deletion_events.on_topic_deletion_requested,
    deletion_payloads.DeleteTopicRequested: deletion_events.on_delete_topic_requested,
    deletion_payloads.StopReplicaAnswered: deletion_events.on_stop_replica_answered,
    payloads.AlterPartitionRequested: isr.on_alter_partition_requested,
    payloads.LogDirFailureNotified: log_dirs.on_log_dir_failure_notified,
    payloads.LeaderAndIsrAnswered: log_dirs.on_leader_and_isr_answered,
    payloads.TimerDue: balance.on_timer_due,
    admin_payloads.CreatePartitionsRequested: growth.on_create_partitions_requested,
    admin_payloads.ElectLeadersRequested: admin_elections.on_elect_leaders_requested,
    admin_payloads.AlterReassignmentsRequested: (
        reassignment_requests.on_alter_reassignments_requested
    ),
    admin_payloads.RaiseLeaderEpochsRequested: epochs.on_raise_leader_epochs_requested,
    payloads.LeaderImbalanceReported: balance.on_leader_imbalance_reported,
}
