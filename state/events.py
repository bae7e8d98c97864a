"""What happened to the cluster: events, and their payloads as typed values by kind.

An event's payload is a JSON object; `parse_payload` turns it into the dataclass of its kind or
raises `MalformedEvent` naming the field. `docs/event-log.md` describes every kind as it is written;
"Where does a new event go?" in `ARCHITECTURE.md` lists what a new one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from state.errors import MalformedEvent
from state.event_kinds import EventKind
from state.groups import kinds
from state.payloads import admin, brokers, controller, log_ends, partitions, tokens, topics


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


PAYLOADS: Mapping[EventKind, Callable[[dict[str, Any]], object]] = {
    EventKind.CONTROLLER_ELECTED: controller.controller_elected,
    EventKind.CONTROLLER_RESIGNED: controller.controller_resigned,
    EventKind.BROKER_REGISTRATIONS_CHANGED: brokers.broker_registrations_changed,
    EventKind.RESYNC_COMPLETED: controller.resync_completed,
    EventKind.CLUSTER_CONFIG_CHANGED: controller.cluster_config_changed,
    EventKind.TOPIC_OBSERVED: topics.topic_observed,
    EventKind.TOPIC_REMOVED: topics.topic_removed,
    EventKind.TOPIC_CONFIG_CHANGED: topics.topic_config_changed,
    EventKind.PARTITION_STATES_OBSERVED: partitions.partition_states_observed,
    EventKind.CREATE_TOPIC_REQUESTED: topics.create_topic_requested,
    EventKind.TOPIC_DELETION_REQUESTED: topics.topic_deletion_requested,
    EventKind.TOPIC_DELETION_WITHDRAWN: topics.topic_deletion_withdrawn,
    EventKind.DELETE_TOPIC_REQUESTED: topics.delete_topic_requested,
    EventKind.STOP_REPLICA_ANSWERED: partitions.stop_replica_answered,
    EventKind.ALTER_PARTITION_REQUESTED: partitions.alter_partition_requested,
    EventKind.CONTROLLED_SHUTDOWN_REQUESTED: brokers.controlled_shutdown_requested,
    EventKind.LOG_DIR_FAILURE_NOTIFIED: brokers.log_dir_failure_notified,
    EventKind.LEADER_AND_ISR_ANSWERED: partitions.leader_and_isr_answered,
    EventKind.PRODUCER_IDS_REQUESTED: brokers.producer_ids_requested,
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: brokers.producer_id_block_observed,
    EventKind.TIMER_DUE: controller.timer_due,
    EventKind.LEADER_IMBALANCE_REPORTED: partitions.leader_imbalance_reported,
    EventKind.LOG_ENDS_REPORTED: log_ends.log_ends_reported,
    EventKind.CREATE_PARTITIONS_REQUESTED: topics.create_partitions_requested,
    EventKind.ELECT_LEADERS_REQUESTED: admin.elect_leaders_requested,
    EventKind.ALTER_REASSIGNMENTS_REQUESTED: admin.alter_reassignments_requested,
    EventKind.ADMIN_ZNODE_OBSERVED: admin.admin_znode_observed,
    EventKind.DELEGATION_TOKENS_EXPIRED: tokens.delegation_tokens_expired,
    EventKind.RAISE_LEADER_EPOCHS_REQUESTED: partitions.raise_leader_epochs_requested,
    EventKind.CONTROLLER_PAUSED: controller.controller_paused,
    EventKind.CONTROLLER_RESUMED: controller.controller_resumed,
    EventKind.CONTROLLED_SHUTDOWN_ALLOWED: brokers.controlled_shutdown_allowed,
    EventKind.CONTROLLED_SHUTDOWN_CHECKED: brokers.controlled_shutdown_checked,
    **kinds.READERS,
}


def parse_payload(event: Event) -> object:
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
