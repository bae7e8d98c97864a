"""What happened to the cluster: the kinds of events, and their payloads as typed values.

An event's payload is a JSON object; `parse_payload` turns it into the dataclass of its kind or
raises `MalformedEvent` naming the field. To add an event kind: add it to `EventKind`, add its
payload to `PAYLOADS`, say in `state.routing` which machines fold it, and handle it in a machine's
handler table. The wire-level description of every kind is `docs/event-log.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import orjson

from state import admin_payloads, control_payloads, deletion_payloads, payload_readers
from state.admin_payloads import AdminPayload
from state.control_payloads import ControlPayload
from state.deletion_payloads import DeletionPayload
from state.errors import MalformedEvent
from state.groups import kinds
from state.groups.payloads import GroupPayload
from state.payloads import Payload

AnyPayload: TypeAlias = Payload | AdminPayload | DeletionPayload | ControlPayload | GroupPayload


class EventKind(StrEnum):
    """Kinds of events, named by what happened."""

    CONTROLLER_ELECTED = "controller_elected"
    CONTROLLER_RESIGNED = "controller_resigned"
    BROKER_REGISTRATIONS_CHANGED = "broker_registrations_changed"
    RESYNC_COMPLETED = "resync_completed"
    CLUSTER_CONFIG_CHANGED = "cluster_config_changed"
    TOPIC_OBSERVED = "topic_observed"
    TOPIC_REMOVED = "topic_removed"
    TOPIC_CONFIG_CHANGED = "topic_config_changed"
    PARTITION_STATES_OBSERVED = "partition_states_observed"
    CREATE_TOPIC_REQUESTED = "create_topic_requested"
    TOPIC_DELETION_REQUESTED = "topic_deletion_requested"
    DELETE_TOPIC_REQUESTED = "delete_topic_requested"
    STOP_REPLICA_ANSWERED = "stop_replica_answered"
    ALTER_PARTITION_REQUESTED = "alter_partition_requested"
    CONTROLLED_SHUTDOWN_REQUESTED = "controlled_shutdown_requested"
    LOG_DIR_FAILURE_NOTIFIED = "log_dir_failure_notified"
    LEADER_AND_ISR_ANSWERED = "leader_and_isr_answered"
    PRODUCER_IDS_REQUESTED = "producer_ids_requested"
    PRODUCER_ID_BLOCK_OBSERVED = "producer_id_block_observed"
    TIMER_DUE = "timer_due"
    LEADER_IMBALANCE_REPORTED = "leader_imbalance_reported"
    CREATE_PARTITIONS_REQUESTED = "create_partitions_requested"
    ELECT_LEADERS_REQUESTED = "elect_leaders_requested"
    ALTER_REASSIGNMENTS_REQUESTED = "alter_reassignments_requested"
    ADMIN_ZNODE_OBSERVED = "admin_znode_observed"
    JOIN_GROUP_REQUESTED = "join_group_requested"
    SYNC_GROUP_REQUESTED = "sync_group_requested"
    LEAVE_GROUP_REQUESTED = "leave_group_requested"
    OFFSET_COMMIT_REQUESTED = "offset_commit_requested"
    TXN_OFFSET_COMMIT_REQUESTED = "txn_offset_commit_requested"
    OFFSETS_APPENDED = "offsets_appended"
    COMMITTED_TOPICS_DELETED = "committed_topics_deleted"
    OFFSET_DELETE_REQUESTED = "offset_delete_requested"
    DELETE_GROUP_REQUESTED = "delete_group_requested"
    GROUP_OBSERVED = "group_observed"
    GROUP_RECORDS_REFUSED = "group_records_refused"
    GROUP_RECORDS_OVERTAKEN = "group_records_overtaken"
    HEARTBEATS_RECEIVED = "heartbeats_received"
    GROUP_TIMER_DUE = "group_timer_due"
    OFFSETS_EXPIRATION_DUE = "offsets_expiration_due"
    GROUP_COORDINATOR_CONFIGURED = "group_coordinator_configured"
    GROUP_PARTITIONS_ELECTED = "group_partitions_elected"
    GROUP_PARTITIONS_LOADED = "group_partitions_loaded"
    GROUP_PARTITIONS_RESIGNED = "group_partitions_resigned"
    TRANSACTION_COMPLETED = "transaction_completed"
    RAISE_LEADER_EPOCHS_REQUESTED = "raise_leader_epochs_requested"
    CONTROLLER_PAUSED = "controller_paused"
    CONTROLLER_RESUMED = "controller_resumed"
    CONTROLLED_SHUTDOWN_ALLOWED = "controlled_shutdown_allowed"
    CONTROLLED_SHUTDOWN_CHECKED = "controlled_shutdown_checked"


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the event log.

    offset: position in the log's total order. time_ms: assigned on append, never goes back.
    key: the topic or group the event is about, the bucket when it is about groups of one bucket, ""
    when it is about the whole cluster.
    """

    offset: int
    time_ms: int
    kind: str
    key: str
    payload: bytes


PAYLOADS: Mapping[EventKind, Callable[[dict[str, Any]], AnyPayload]] = {
    EventKind.CONTROLLER_ELECTED: payload_readers.controller_elected,
    EventKind.CONTROLLER_RESIGNED: payload_readers.controller_resigned,
    EventKind.BROKER_REGISTRATIONS_CHANGED: payload_readers.broker_registrations_changed,
    EventKind.RESYNC_COMPLETED: payload_readers.resync_completed,
    EventKind.CLUSTER_CONFIG_CHANGED: payload_readers.cluster_config_changed,
    EventKind.TOPIC_OBSERVED: payload_readers.topic_observed,
    EventKind.TOPIC_REMOVED: payload_readers.topic_removed,
    EventKind.TOPIC_CONFIG_CHANGED: payload_readers.topic_config_changed,
    EventKind.PARTITION_STATES_OBSERVED: payload_readers.partition_states_observed,
    EventKind.CREATE_TOPIC_REQUESTED: payload_readers.create_topic_requested,
    EventKind.TOPIC_DELETION_REQUESTED: deletion_payloads.topic_deletion_requested,
    EventKind.DELETE_TOPIC_REQUESTED: deletion_payloads.delete_topic_requested,
    EventKind.STOP_REPLICA_ANSWERED: deletion_payloads.stop_replica_answered,
    EventKind.ALTER_PARTITION_REQUESTED: payload_readers.alter_partition_requested,
    EventKind.CONTROLLED_SHUTDOWN_REQUESTED: payload_readers.controlled_shutdown_requested,
    EventKind.LOG_DIR_FAILURE_NOTIFIED: payload_readers.log_dir_failure_notified,
    EventKind.LEADER_AND_ISR_ANSWERED: payload_readers.leader_and_isr_answered,
    EventKind.PRODUCER_IDS_REQUESTED: payload_readers.producer_ids_requested,
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: payload_readers.producer_id_block_observed,
    EventKind.TIMER_DUE: payload_readers.timer_due,
    EventKind.LEADER_IMBALANCE_REPORTED: payload_readers.leader_imbalance_reported,
    EventKind.CREATE_PARTITIONS_REQUESTED: admin_payloads.create_partitions_requested,
    EventKind.ELECT_LEADERS_REQUESTED: admin_payloads.elect_leaders_requested,
    EventKind.ALTER_REASSIGNMENTS_REQUESTED: admin_payloads.alter_reassignments_requested,
    EventKind.ADMIN_ZNODE_OBSERVED: admin_payloads.admin_znode_observed,
    EventKind.RAISE_LEADER_EPOCHS_REQUESTED: admin_payloads.raise_leader_epochs_requested,
    EventKind.CONTROLLER_PAUSED: control_payloads.controller_paused,
    EventKind.CONTROLLER_RESUMED: control_payloads.controller_resumed,
    EventKind.CONTROLLED_SHUTDOWN_ALLOWED: control_payloads.controlled_shutdown_allowed,
    EventKind.CONTROLLED_SHUTDOWN_CHECKED: control_payloads.controlled_shutdown_checked,
    **{EventKind(kind): read for kind, read in kinds.READERS.items()},
}


def parse_payload(event: Event) -> AnyPayload:
    """Return the event's payload as the dataclass of its kind.

    Raises MalformedEvent for an unknown kind, broken JSON, or a missing or mistyped field.
    """
    try:
        parse = PAYLOADS[EventKind(event.kind)]
    except ValueError:
        raise MalformedEvent(f"unknown event kind {event.kind!r}") from None
    try:
        body = orjson.loads(event.payload)
    except orjson.JSONDecodeError as error:
        raise MalformedEvent(f"payload is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise MalformedEvent(f"payload is a {type(body).__name__}, not an object")
    try:
        parsed = parse(body)
        kinds.check_key(event.kind, event.key, parsed)
    except KeyError as error:
        raise MalformedEvent(f"field {error.args[0]!r} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise MalformedEvent(f"bad field: {error}") from None
    topic = getattr(parsed, "topic", event.key)
    if event.key and topic != event.key:
        raise MalformedEvent(f"payload is about topic {topic!r}, the key says {event.key!r}")
    return parsed
