"""Functions that read the events' payloads from JSON objects.

Every reader takes the decoded JSON object and raises KeyError, TypeError or ValueError when a field
is missing or not of its type; `state.events.parse_payload` turns those into MalformedEvent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from state.cluster.authority import checked_config
from state.json_values import (
    broker_ids,
    number_lists,
    optional_bool,
    optional_number,
    partition_numbers,
    text,
    whole_number,
    whole_numbers,
)
from state.matrix import pad_rows
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
        leader=whole_numbers(leader),
        leader_epoch=whole_numbers(leader_epoch),
        isr=pad_rows(isr),
        controller_epoch=whole_numbers(controller_epoch),
        recovery=whole_numbers(recovery),
        zk_version=whole_numbers(zk_version),
    )


def controller_elected(body: dict[str, Any]) -> ControllerElected:
    """Read controller_elected."""
    return ControllerElected(
        controller_id=whole_number(body["controller_id"]),
        epoch=whole_number(body["epoch"]),
        epoch_zk_version=whole_number(body["epoch_zk_version"]),
        endpoints=tuple(dict(endpoint) for endpoint in body["endpoints"]),
        config=checked_config(dict(body["config"])),
    )


def controller_resigned(body: dict[str, Any]) -> ControllerResigned:
    """Read controller_resigned."""
    return ControllerResigned(reason=text(body["reason"]))


def _broker(body: dict[str, Any]) -> BrokerRegistration:
    rack = body.get("rack")
    return BrokerRegistration(
        id=whole_number(body["id"]),
        epoch=whole_number(body["epoch"]),
        rack=None if rack is None else text(rack),
        endpoints=tuple(dict(endpoint) for endpoint in body["endpoints"]),
    )


def broker_registrations_changed(body: dict[str, Any]) -> BrokerRegistrationsChanged:
    """Read broker_registrations_changed; absent lists are empty."""
    return BrokerRegistrationsChanged(
        registered=tuple(map(_broker, body.get("registered", ()))),
        unregistered=tuple(map(whole_number, body.get("unregistered", ()))),
        bounced=tuple(map(_broker, body.get("bounced", ()))),
        updated=tuple(map(_broker, body.get("updated", ()))),
    )


def resync_completed(body: dict[str, Any]) -> ResyncCompleted:
    """Read resync_completed."""
    return ResyncCompleted(topics=whole_number(body["topics"]))


def cluster_config_changed(body: dict[str, Any]) -> ClusterConfigChanged:
    """Read cluster_config_changed."""
    return ClusterConfigChanged(config=checked_config(dict(body["config"])))


def topic_observed(body: dict[str, Any]) -> TopicObserved:
    """Read topic_observed."""
    partitions = partition_numbers(body["partitions"])
    replicas = number_lists(body["replicas"])
    if len(replicas) != len(partitions):
        raise ValueError(f"{len(replicas)} replica lists for {len(partitions)} partitions")
    empty: list[list[int]] = [[] for _ in range(len(partitions))]
    return TopicObserved(
        topic=text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        new_topic_id=topic_id_from_text(body.get("new_topic_id")),
        unclean=optional_bool(body.get("unclean")),
        min_insync=optional_number(body.get("min_insync_replicas")),
        zk_version=whole_number(body.get("zk_version", 0)),
        partitions=partitions,
        replicas=replicas,
        adding=pad_rows(body.get("adding") or empty),
        removing=pad_rows(body.get("removing") or empty),
        states=states_from_json(body.get("states"), len(partitions)),
        unwritable=bool(optional_bool(body.get("unwritable"))),
    )


def topic_removed(body: dict[str, Any]) -> TopicRemoved:
    """Read topic_removed."""
    topic_id = body.get("topic_id")
    return TopicRemoved(
        topic=text(body["topic"]),
        topic_id=None if topic_id is None else text(topic_id),
        observed_again=bool(optional_bool(body.get("observed_again"))),
        unmarked=bool(optional_bool(body.get("unmarked"))),
    )


def topic_config_changed(body: dict[str, Any]) -> TopicConfigChanged:
    """Read topic_config_changed."""
    return TopicConfigChanged(
        topic=text(body["topic"]),
        unclean=optional_bool(body["unclean"]),
        min_insync=optional_number(body.get("min_insync_replicas")),
    )


def partition_states_observed(body: dict[str, Any]) -> PartitionStatesObserved:
    """Read partition_states_observed."""
    partitions = partition_numbers(body["partitions"])
    return PartitionStatesObserved(
        topic=text(body["topic"]),
        cause=text(body["cause"]),
        partitions=partitions,
        states=states_from_json(body["states"], len(partitions)),
        uncreated=np.isin(partitions, partition_numbers(body.get("uncreated", []))),
    )


def create_topic_requested(body: dict[str, Any]) -> CreateTopicRequested:
    """Read create_topic_requested."""
    assignment = body.get("assignment")
    return CreateTopicRequested(
        request_id=text(body["request_id"]),
        topic=text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        partitions=whole_number(body["partitions"]),
        replication_factor=whole_number(body["replication_factor"]),
        assignment=None
        if assignment is None
        else {int(p): tuple(map(whole_number, ids)) for p, ids in assignment.items()},
        configs={text(k): text(v) for k, v in body.get("configs", {}).items()},
        validate_only=bool(body.get("validate_only", False)),
        start_index=whole_number(body["start_index"]),
        shift=whole_number(body["shift"]),
    )


def alter_partition_requested(body: dict[str, Any]) -> AlterPartitionRequested:
    """Read alter_partition_requested."""
    rows: list[dict[str, Any]] = list(body["partitions"])
    topic_id = body.get("topic_id")
    return AlterPartitionRequested(
        request_id=text(body["request_id"]),
        broker_id=whole_number(body["broker_id"]),
        broker_epoch=whole_number(body["broker_epoch"]),
        version=whole_number(body["version"]),
        topic=text(body["topic"]),
        topic_id=None if topic_id is None else text(topic_id),
        partitions=partition_numbers([row["partition"] for row in rows]),
        leader_epoch=whole_numbers([row["leader_epoch"] for row in rows]),
        partition_epoch=whole_numbers([row["partition_epoch"] for row in rows]),
        recovery=whole_numbers([row.get("recovery", 0) for row in rows]),
        isr=pad_rows([broker_ids(row["isr"]) for row in rows]),
    )


def controlled_shutdown_requested(body: dict[str, Any]) -> ControlledShutdownRequested:
    """Read controlled_shutdown_requested."""
    return ControlledShutdownRequested(
        request_id=text(body["request_id"]),
        broker_id=whole_number(body["broker_id"]),
        broker_epoch=whole_number(body["broker_epoch"]),
        version=whole_number(body["version"]),
    )


def log_dir_failure_notified(body: dict[str, Any]) -> LogDirFailureNotified:
    """Read log_dir_failure_notified."""
    return LogDirFailureNotified(broker_ids=tuple(map(whole_number, body["broker_ids"])))


def leader_and_isr_answered(body: dict[str, Any]) -> LeaderAndIsrAnswered:
    """Read leader_and_isr_answered."""
    partitions, errors = partition_numbers(body["partitions"]), whole_numbers(body["errors"])
    if len(partitions) != len(errors):
        raise ValueError(f"{len(errors)} errors for {len(partitions)} partitions")
    return LeaderAndIsrAnswered(
        broker_id=whole_number(body["broker_id"]),
        broker_epoch=whole_number(body["broker_epoch"]),
        topic=text(body["topic"]),
        partitions=partitions,
        errors=errors,
    )


def producer_ids_requested(body: dict[str, Any]) -> ProducerIdsRequested:
    """Read producer_ids_requested."""
    return ProducerIdsRequested(
        request_id=text(body["request_id"]),
        broker_id=whole_number(body["broker_id"]),
        broker_epoch=whole_number(body["broker_epoch"]),
    )


def producer_id_block_observed(body: dict[str, Any]) -> ProducerIdBlockObserved:
    """Read producer_id_block_observed."""
    return ProducerIdBlockObserved(
        block_end=whole_number(body["block_end"]), zk_version=whole_number(body["zk_version"])
    )


def timer_due(body: dict[str, Any]) -> TimerDue:
    """Read timer_due."""
    return TimerDue(timer=text(body["timer"]), deadline_ms=whole_number(body["deadline_ms"]))


def leader_imbalance_reported(body: dict[str, Any]) -> LeaderImbalanceReported:
    """Read leader_imbalance_reported."""
    return LeaderImbalanceReported(
        preferred={int(broker): whole_number(count) for broker, count in body["preferred"].items()},
        imbalanced={
            int(broker): whole_number(count) for broker, count in body["imbalanced"].items()
        },
        proposals=tuple(
            (text(topic), whole_number(partition), whole_number(broker))
            for topic, partition, broker in body.get("proposals", ())
        ),
    )
