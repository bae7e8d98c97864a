"""Which function of a slot folds which payload: the slot's dispatch table.

Events of the kinds in `together.py` go there first, even one alone, and come here where its
`applies` turns them down.
"""

from __future__ import annotations

from state.handlers import Handlers
from state.partitions import (
    admin_elections,
    cluster_events,
    creation,
    deletion_events,
    epochs,
    growth,
    isr,
    leader_rebalance,
    log_dirs,
    log_ends,
    reassignment_requests,
    shutdown,
    states,
    topics,
)
from state.partitions.slot import Slot
from state.payloads.admin import AlterReassignmentsRequested, ElectLeadersRequested
from state.payloads.brokers import (
    BrokerRegistrationsChanged,
    ControlledShutdownAllowed,
    ControlledShutdownChecked,
    ControlledShutdownRequested,
    LogDirFailureNotified,
)
from state.payloads.controller import (
    ClusterConfigChanged,
    ControllerElected,
    ControllerPaused,
    ControllerResigned,
    ControllerResumed,
    ResyncCompleted,
    TimerDue,
)
from state.payloads.log_ends import LogEndsReported
from state.payloads.partitions import (
    AlterPartitionRequested,
    LeaderAndIsrAnswered,
    LeaderImbalanceReported,
    PartitionStatesObserved,
    RaiseLeaderEpochsRequested,
    StopReplicaAnswered,
)
from state.payloads.topics import (
    CreatePartitionsRequested,
    CreateTopicRequested,
    DeleteTopicRequested,
    TopicConfigChanged,
    TopicDeletionRequested,
    TopicDeletionWithdrawn,
    TopicObserved,
    TopicRemoved,
)

SLOT_HANDLERS: Handlers[Slot] = {
    ControllerElected: cluster_events.on_controller_elected,
    ControllerResigned: cluster_events.on_controller_resigned,
    ResyncCompleted: cluster_events.on_resync_completed,
    BrokerRegistrationsChanged: cluster_events.on_broker_registrations_changed,
    ControlledShutdownRequested: shutdown.on_controlled_shutdown_requested,
    ControlledShutdownChecked: shutdown.on_controlled_shutdown_checked,
    ControlledShutdownAllowed: shutdown.on_controlled_shutdown_allowed,
    ControllerPaused: cluster_events.on_controller_paused,
    ControllerResumed: cluster_events.on_controller_resumed,
    ClusterConfigChanged: cluster_events.on_cluster_config_changed,
    TopicObserved: topics.on_topic_observed,
    TopicRemoved: topics.on_topic_removed,
    TopicConfigChanged: topics.on_topic_config_changed,
    PartitionStatesObserved: states.on_partition_states_observed,
    CreateTopicRequested: creation.on_create_topic_requested,
    TopicDeletionRequested: deletion_events.on_topic_deletion_requested,
    TopicDeletionWithdrawn: deletion_events.on_topic_deletion_withdrawn,
    DeleteTopicRequested: deletion_events.on_delete_topic_requested,
    StopReplicaAnswered: deletion_events.on_stop_replica_answered,
    AlterPartitionRequested: isr.on_alter_partition_requested,
    LogDirFailureNotified: log_dirs.on_log_dir_failure_notified,
    LeaderAndIsrAnswered: log_dirs.on_leader_and_isr_answered,
    TimerDue: leader_rebalance.on_timer_due,
    CreatePartitionsRequested: growth.on_create_partitions_requested,
    ElectLeadersRequested: admin_elections.on_elect_leaders_requested,
    AlterReassignmentsRequested: reassignment_requests.on_alter_reassignments_requested,
    RaiseLeaderEpochsRequested: epochs.on_raise_leader_epochs_requested,
    LeaderImbalanceReported: leader_rebalance.on_leader_imbalance_reported,
    LogEndsReported: log_ends.on_log_ends_reported,
}
