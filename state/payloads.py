"""Typed payloads of the events and the functions that read them from JSON objects.

Every reader takes the decoded JSON object and raises KeyError, TypeError or ValueError when a field
is missing or not of its type; `state.events.parse_payload` turns those into MalformedEvent. Arrays
of replicas are int32[n, R], padded on the right with -1.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from state.cluster.authority import checked_config
from state.partitions.matrix import Int32s, pad_rows

NO_TOPIC_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """We hold `/controller` under a new epoch; until resync_completed follows a fresh load.

    endpoints: where brokers and clients reach us, as in a broker's registration.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    endpoints: tuple[dict[str, Any], ...]
    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class ControllerResigned:
    """We gave the controller role up; nothing may be decided until the next election."""

    reason: str


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker's registration; epoch is the czxid of its znode, endpoints are kept as they came."""

    id: int
    epoch: int
    rack: str | None
    endpoints: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BrokerRegistrationsChanged:
    """Brokers that came, went, came back with a new epoch, or changed their endpoints, in one
    observation.
    """

    registered: tuple[BrokerRegistration, ...]
    unregistered: tuple[int, ...]
    bounced: tuple[BrokerRegistration, ...]
    updated: tuple[BrokerRegistration, ...]


@dataclass(frozen=True, slots=True)
class ResyncCompleted:
    """The bulk load that followed the election is complete; topics is how many were observed."""

    topics: int


@dataclass(frozen=True, slots=True)
class ClusterConfigChanged:
    """Cluster-wide configuration values that decisions depend on."""

    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class States:
    """Contents of partition state znodes, one row each.

    present bool[n]: the znode exists and is readable; the other columns mean nothing where it is
    False. leader, leader_epoch, controller_epoch, recovery, zk_version int32[n]; isr int32[n, R]
    padded with -1.
    """

    present: npt.NDArray[np.bool_]
    leader: Int32s
    leader_epoch: Int32s
    isr: Int32s
    controller_epoch: Int32s
    recovery: Int32s
    zk_version: Int32s


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """A topic as ZooKeeper has it: its partitions' assignment, and their states where present."""

    topic: str
    topic_id: bytes
    unclean: bool | None
    zk_version: int
    partitions: Int32s
    replicas: Int32s
    adding: Int32s
    removing: Int32s
    states: States


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic's znode is gone."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's override of unclean.leader.election.enable; None when it has none."""

    topic: str
    unclean: bool | None


@dataclass(frozen=True, slots=True)
class PartitionStatesObserved:
    """State znodes of some partitions of a topic, read again.

    cause: "notification" (a leader wrote them itself), "conflict" (our write met other content),
    "read".
    """

    topic: str
    cause: str
    partitions: Int32s
    states: States


@dataclass(frozen=True, slots=True)
class CreateTopicRequested:
    """CreateTopics for one topic; start_index and shift are the placement's random numbers, drawn
    at the gateway.
    """

    request_id: str
    topic: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    assignment: dict[int, tuple[int, ...]] | None
    configs: dict[str, str]
    validate_only: bool
    start_index: int
    shift: int


@dataclass(frozen=True, slots=True)
class AlterPartitionRequested:
    """AlterPartition for one topic; isr int32[n, R] padded, the other columns int32[n]."""

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int
    topic: str
    topic_id: str | None
    partitions: Int32s
    leader_epoch: Int32s
    partition_epoch: Int32s
    recovery: Int32s
    isr: Int32s


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
    """A broker asks to be relieved of its leaders; broker_epoch is -1 when the request's version
    has none.
    """

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class LogDirFailureNotified:
    """Brokers that announced a failed log directory in ZooKeeper."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    """Per-partition answers of a broker to LeaderAndIsr for one topic (protocol error codes)."""

    broker_id: int
    broker_epoch: int
    topic: str
    partitions: Int32s
    errors: Int32s


@dataclass(frozen=True, slots=True)
class ProducerIdsRequested:
    """A broker asks for a block of producer ids."""

    request_id: str
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdBlockObserved:
    """Content of `/latest_producer_id_block`; block_end -1 and zk_version -1 when the znode is
    missing.
    """

    block_end: int
    zk_version: int


@dataclass(frozen=True, slots=True)
class TimerDue:
    """The clock reached an armed timer's deadline."""

    timer: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class LeaderImbalanceReported:
    """Per broker: partitions that prefer it as leader, and how many of those are led by another."""

    preferred: dict[int, int]
    imbalanced: dict[int, int]


Payload: TypeAlias = (
    ControllerElected
    | ControllerResigned
    | BrokerRegistrationsChanged
    | ResyncCompleted
    | ClusterConfigChanged
    | TopicObserved
    | TopicRemoved
    | TopicConfigChanged
    | PartitionStatesObserved
    | CreateTopicRequested
    | AlterPartitionRequested
    | ControlledShutdownRequested
    | LogDirFailureNotified
    | LeaderAndIsrAnswered
    | ProducerIdsRequested
    | ProducerIdBlockObserved
    | TimerDue
    | LeaderImbalanceReported
)


def topic_id_from_text(text: str | None) -> bytes:
    """Return the 16 bytes of a base64url topic id as znodes have it; zero bytes when the topic has
    none.

    Raises ValueError when the text is not 16 bytes in base64url without padding.
    """
    if text is None:
        return NO_TOPIC_ID
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"topic_id {text!r} is {len(raw)} bytes long, not 16")
    return raw


def topic_id_to_text(topic_id: bytes) -> str | None:
    """Return a topic id as znodes have it (base64url without padding), or None for the zero id."""
    if topic_id == NO_TOPIC_ID:
        return None
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


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
        isr=pad_rows([row["isr"] for row in rows]),
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
