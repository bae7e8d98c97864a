"""Which function of the cluster machine folds which payload: its dispatch table."""

from __future__ import annotations

from state.cluster import (
    alter_partition,
    delegation_tokens,
    delete_topic,
    machine,
    producer_ids,
    shutdowns,
)
from state.cluster.cluster import Cluster
from state.handlers import Handlers
from state.payloads.admin import AdminZnodeObserved
from state.payloads.brokers import (
    BrokerRegistrationsChanged,
    ControlledShutdownAllowed,
    ControlledShutdownChecked,
    ControlledShutdownRequested,
    ProducerIdBlockObserved,
    ProducerIdsRequested,
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
from state.payloads.partitions import AlterPartitionRequested, LeaderImbalanceReported
from state.payloads.tokens import DelegationTokensExpired
from state.payloads.topics import DeleteTopicRequested

CLUSTER_HANDLERS: Handlers[Cluster] = {
    ControllerElected: machine.on_controller_elected,
    ControllerResigned: machine.on_controller_resigned,
    ClusterConfigChanged: machine.on_cluster_config_changed,
    ResyncCompleted: machine.on_resync_completed,
    BrokerRegistrationsChanged: machine.on_broker_registrations_changed,
    ControlledShutdownRequested: shutdowns.on_controlled_shutdown_requested,
    ProducerIdsRequested: producer_ids.on_producer_ids_requested,
    ProducerIdBlockObserved: producer_ids.on_producer_id_block_observed,
    AlterPartitionRequested: alter_partition.on_alter_partition_requested,
    DeleteTopicRequested: delete_topic.on_delete_topic_requested,
    TimerDue: machine.on_timer_due,
    LeaderImbalanceReported: machine.on_leader_imbalance_reported,
    ControllerPaused: machine.on_controller_paused,
    ControllerResumed: machine.on_controller_resumed,
    ControlledShutdownAllowed: shutdowns.on_controlled_shutdown_allowed,
    ControlledShutdownChecked: shutdowns.on_controlled_shutdown_checked,
    AdminZnodeObserved: machine.on_admin_znode_observed,
    DelegationTokensExpired: delegation_tokens.on_delegation_tokens_expired,
}
