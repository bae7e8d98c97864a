"""Functions that read the events' payloads from JSON objects.

Every reader takes the decoded JSON object and raises KeyError, TypeError or ValueError when a field
is missing or not of its type; `state.events.parse_payload` turns those into MalformedEvent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from state.cluster.authority import checked_config
from state.partitions.matrix import Int32s, pad_rows
from state.payloads import (
    AlterPartitionRequested,
    BrokerRegistration,
    BrokerRegistrationsChanged,
    ClusterConfigChanged,
    ControlledShutdownRequested,
    ControllerElected,
    ControllerResigned,
    CreateTopicRequested,
    LeaderAndIsrAnswered,
    LeaderImbalanceReported,
    LogDirFailureNotified,
    PartitionStatesObserved,
    ProducerIdBlockObserved,
    ProducerIdsRequested,
    ResyncCompleted,
    States,
    TimerDue,
    TopicConfigChanged,
    TopicObserved,
    TopicRemoved,
    topic_id_from_text,
)


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _optional_bool(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true, false nor null")
    return value


def _ints(values: object) -> Int32s:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return np.array([_int(value) for value in values], dtype=np.int32)


def _partition_numbers(values: object) -> Int32s:
    numbers = _ints(values)
    if (numbers < 0).any() or len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"partitions {values!r} are not distinct numbers from 0 up")
    return numbers


def _broker_ids(values: object) -> list[int]:
    ids: list[int] = _ints(values).tolist()
    if any(broker < 0 for broker in ids):
        raise ValueError(f"{values!r} has a negative broker id")
    return ids


def _columns(rows: list[list[Any]], width: int) -> list[list[Any]]:
    for row in rows:
        if len(row) != width:
            raise ValueError(f"{row!r} has {len(row)} values, not {width}")
    return (
        [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    )


ABSENT_STATE: list[Any] = [-1, -1, [], -1, 0, -1]
"""What the columns of States hold where the znode is missing."""


def states_from_json(states: list[list[Any] | None] | None, count: int) -> States:
    """Read state tuples [leader, leader_epoch, isr, controller_epoch, recovery, zk_version] into
    columns.

    states: one tuple or null per partition, or null when none exists. Raises ValueError on a wrong
    length.
    """
    rows = states if states is not None else [None] * count
    if len(rows) != count:
        raise ValueError(f"{len(rows)} states for {count} partitions")
    filled = [ABSENT_STATE if row is None else row for row in rows]
    leader, leader_epoch, isr, controller_epoch, recovery, zk_version = _columns(filled, 6)
    return States(
        present=np.array([row is not None for row in rows], dtype=bool),
        leader=_ints(leader),
        leader_epoch=_ints(leader_epoch),
        isr=pad_rows(isr),
        controller_epoch=_ints(controller_epoch),
        recovery=_ints(recovery),
        zk_version=_ints(zk_version),
    )


def controller_elected(body: dict[str, Any]) -> ControllerElected:
    """Read controller_elected."""
    return ControllerElected(
        controller_id=_int(body["controller_id"]),
        epoch=_int(body["epoch"]),
        epoch_zk_version=_int(body["epoch_zk_version"]),
        endpoints=tuple(dict(endpoint) for endpoint in body["endpoints"]),
        config=checked_config(dict(body["config"])),
    )


def controller_resigned(body: dict[str, Any]) -> ControllerResigned:
    """Read controller_resigned."""
    return ControllerResigned(reason=_text(body["reason"]))


def _broker(body: dict[str, Any]) -> BrokerRegistration:
    rack = body.get("rack")
    return BrokerRegistration(
        id=_int(body["id"]),
        epoch=_int(body["epoch"]),
        rack=None if rack is None else _text(rack),
        endpoints=tuple(dict(endpoint) for endpoint in body["endpoints"]),
    )


def broker_registrations_changed(body: dict[str, Any]) -> BrokerRegistrationsChanged:
    """Read broker_registrations_changed; absent lists are empty."""
    return BrokerRegistrationsChanged(
        registered=tuple(map(_broker, body.get("registered", ()))),
        unregistered=tuple(map(_int, body.get("unregistered", ()))),
        bounced=tuple(map(_broker, body.get("bounced", ()))),
        updated=tuple(map(_broker, body.get("updated", ()))),
    )


def resync_completed(body: dict[str, Any]) -> ResyncCompleted:
    """Read resync_completed."""
    return ResyncCompleted(topics=_int(body["topics"]))


def cluster_config_changed(body: dict[str, Any]) -> ClusterConfigChanged:
    """Read cluster_config_changed."""
    return ClusterConfigChanged(config=checked_config(dict(body["config"])))


def topic_observed(body: dict[str, Any]) -> TopicObserved:
    """Read topic_observed."""
    partitions = _partition_numbers(body["partitions"])
    replicas = pad_rows([_ints(ids).tolist() for ids in body["replicas"]])
    if len(replicas) != len(partitions):
        raise ValueError(f"{len(replicas)} replica lists for {len(partitions)} partitions")
    empty: list[list[int]] = [[] for _ in range(len(partitions))]
    return TopicObserved(
        topic=_text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        unclean=_optional_bool(body.get("unclean")),
        zk_version=_int(body.get("zk_version", 0)),
        partitions=partitions,
        replicas=replicas,
        adding=pad_rows(body.get("adding") or empty),
        removing=pad_rows(body.get("removing") or empty),
        states=states_from_json(body.get("states"), len(partitions)),
    )


def topic_removed(body: dict[str, Any]) -> TopicRemoved:
    """Read topic_removed."""
    return TopicRemoved(topic=_text(body["topic"]))


def topic_config_changed(body: dict[str, Any]) -> TopicConfigChanged:
    """Read topic_config_changed."""
    return TopicConfigChanged(topic=_text(body["topic"]), unclean=_optional_bool(body["unclean"]))


def partition_states_observed(body: dict[str, Any]) -> PartitionStatesObserved:
    """Read partition_states_observed."""
    partitions = _partition_numbers(body["partitions"])
    return PartitionStatesObserved(
        topic=_text(body["topic"]),
        cause=_text(body["cause"]),
        partitions=partitions,
        states=states_from_json(body["states"], len(partitions)),
    )


def create_topic_requested(body: dict[str, Any]) -> CreateTopicRequested:
    """Read create_topic_requested."""
    assignment = body.get("assignment")
    return CreateTopicRequested(
        request_id=_text(body["request_id"]),
        topic=_text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        partitions=_int(body["partitions"]),
        replication_factor=_int(body["replication_factor"]),
        assignment=None
        if assignment is None
        else {int(p): tuple(map(_int, ids)) for p, ids in assignment.items()},
        configs={_text(k): _text(v) for k, v in body.get("configs", {}).items()},
        validate_only=bool(body.get("validate_only", False)),
        start_index=_int(body["start_index"]),
        shift=_int(body["shift"]),
    )


def alter_partition_requested(body: dict[str, Any]) -> AlterPartitionRequested:
    """Read alter_partition_requested."""
    rows: list[dict[str, Any]] = list(body["partitions"])
    topic_id = body.get("topic_id")
    return AlterPartitionRequested(
        request_id=_text(body["request_id"]),
        broker_id=_int(body["broker_id"]),
        broker_epoch=_int(body["broker_epoch"]),
        version=_int(body["version"]),
        topic=_text(body["topic"]),
        topic_id=None if topic_id is None else _text(topic_id),
        partitions=_partition_numbers([row["partition"] for row in rows]),
        leader_epoch=_ints([row["leader_epoch"] for row in rows]),
        partition_epoch=_ints([row["partition_epoch"] for row in rows]),
        recovery=_ints([row.get("recovery", 0) for row in rows]),
        isr=pad_rows([_broker_ids(row["isr"]) for row in rows]),
    )


def controlled_shutdown_requested(body: dict[str, Any]) -> ControlledShutdownRequested:
    """Read controlled_shutdown_requested."""
    return ControlledShutdownRequested(
        request_id=_text(body["request_id"]),
        broker_id=_int(body["broker_id"]),
        broker_epoch=_int(body["broker_epoch"]),
        version=_int(body["version"]),
    )


def log_dir_failure_notified(body: dict[str, Any]) -> LogDirFailureNotified:
    """Read log_dir_failure_notified."""
    return LogDirFailureNotified(broker_ids=tuple(map(_int, body["broker_ids"])))


def leader_and_isr_answered(body: dict[str, Any]) -> LeaderAndIsrAnswered:
    """Read leader_and_isr_answered."""
    partitions, errors = _partition_numbers(body["partitions"]), _ints(body["errors"])
    if len(partitions) != len(errors):
        raise ValueError(f"{len(errors)} errors for {len(partitions)} partitions")
    return LeaderAndIsrAnswered(
        broker_id=_int(body["broker_id"]),
        broker_epoch=_int(body["broker_epoch"]),
        topic=_text(body["topic"]),
        partitions=partitions,
        errors=errors,
    )


def producer_ids_requested(body: dict[str, Any]) -> ProducerIdsRequested:
    """Read producer_ids_requested."""
    return ProducerIdsRequested(
        request_id=_text(body["request_id"]),
        broker_id=_int(body["broker_id"]),
        broker_epoch=_int(body["broker_epoch"]),
    )


def producer_id_block_observed(body: dict[str, Any]) -> ProducerIdBlockObserved:
    """Read producer_id_block_observed."""
    return ProducerIdBlockObserved(
        block_end=_int(body["block_end"]), zk_version=_int(body["zk_version"])
    )


def timer_due(body: dict[str, Any]) -> TimerDue:
    """Read timer_due."""
    return TimerDue(timer=_text(body["timer"]), deadline_ms=_int(body["deadline_ms"]))


def leader_imbalance_reported(body: dict[str, Any]) -> LeaderImbalanceReported:
    """Read leader_imbalance_reported."""
    return LeaderImbalanceReported(
        preferred={int(broker): _int(count) for broker, count in body["preferred"].items()},
        imbalanced={int(broker): _int(count) for broker, count in body["imbalanced"].items()},
    )
