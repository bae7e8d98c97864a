"""Partitions: their states in ZooKeeper, what leaders ask for, and what brokers answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from state.json_values import (
    broker_id_lists,
    int32,
    int32_array,
    int64,
    optional_text,
    partition_numbers,
    replica_ids,
    text,
)
from state.matrix import Int32s, pad_rows


class StateValues(NamedTuple):
    """The content of a partition state znode and its version, in the order in which events have
    them.
    """

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    controller_epoch: int
    recovery: int
    zk_version: int

    @classmethod
    def of_json(cls, values: Sequence[Any]) -> Self:
        """Name the values of a list in an event."""
        return cls(*values)

    def as_json(self) -> list[Any]:
        """Return the list; orjson takes no tuple with names."""
        return [*self]


@dataclass(frozen=True, slots=True)
class ObservedStates:
    """Contents of partition state znodes as an event tells them, one row each.

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


_ABSENT = StateValues(-1, -1, [], -1, 0, -1)
"""What the columns of ObservedStates hold where the znode is missing."""


def states_from_json(states: list[list[Any] | None] | None, count: int) -> ObservedStates:
    """Read states, each the list of a `StateValues`, into columns.

    states: one list or null per partition, or null when none exists. Raises ValueError on a wrong
    length.
    """
    if states is None:
        return _none_exists(count)
    if len(states) != count:
        raise ValueError(f"{len(states)} states for {count} partitions")
    filled = [_ABSENT if row is None else row for row in states]
    leader, leader_epoch, isr, controller_epoch, recovery, zk_version = _columns(
        filled, len(StateValues._fields)
    )
    return ObservedStates(
        present=np.array([row is not None for row in states], dtype=bool),
        leader=int32_array(leader),
        leader_epoch=int32_array(leader_epoch),
        isr=broker_id_lists(isr, count),
        controller_epoch=int32_array(controller_epoch),
        recovery=int32_array(recovery),
        zk_version=int32_array(zk_version),
    )


def _none_exists(count: int) -> ObservedStates:
    """Return the columns of partitions that are just created; every new topic has them."""
    columns = [np.full((count, *np.shape(value)), value, dtype=np.int32) for value in _ABSENT]
    return ObservedStates(np.zeros(count, dtype=bool), *columns)


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    for row in rows:
        if len(row) != width:
            raise ValueError(f"{row!r} has {len(row)} values, not {width}")
    return (
        [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    )


class StateCause(StrEnum):
    """Why state znodes were read again; any other text counts as READ.

    NOTIFICATION: a leader wrote them itself. CONFLICT: our write met other content. REJECTED:
    ZooKeeper takes no such write. Beside another controller OVERTAKEN: written before our decision;
    ADOPTED: the other one's decision.
    """

    NOTIFICATION = "notification"
    CONFLICT = "conflict"
    REJECTED = "rejected"
    READ = "read"
    OVERTAKEN = "overtaken"
    ADOPTED = "adopted"


@dataclass(frozen=True, slots=True)
class PartitionStatesObserved:
    """State znodes of some partitions of a topic, read again.

    topic_id: of the topic they were read for; None: of any of that name. cause: a StateCause.
    uncreated bool[n]: it has no state yet, the write that was to create it did not happen.
    """

    topic: str
    topic_id: str | None
    cause: str
    partitions: Int32s
    states: ObservedStates
    uncreated: npt.NDArray[np.bool_]


def partition_states_observed(body: dict[str, Any]) -> PartitionStatesObserved:
    """Read partition_states_observed."""
    partitions = partition_numbers(body["partitions"])
    return PartitionStatesObserved(
        topic=text(body["topic"]),
        topic_id=optional_text(body.get("topic_id")),
        cause=text(body["cause"]),
        partitions=partitions,
        states=states_from_json(body["states"], len(partitions)),
        uncreated=np.isin(partitions, partition_numbers(body.get("uncreated", []))),
    )


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


def alter_partition_requested(body: dict[str, Any]) -> AlterPartitionRequested:
    """Read alter_partition_requested."""
    rows: list[dict[str, Any]] = list(body["partitions"])
    return AlterPartitionRequested(
        request_id=text(body["request_id"]),
        broker_id=int32(body["broker_id"]),
        broker_epoch=int64(body["broker_epoch"]),
        version=int32(body["version"]),
        topic=text(body["topic"]),
        topic_id=optional_text(body.get("topic_id")),
        partitions=partition_numbers([row["partition"] for row in rows]),
        leader_epoch=int32_array([row["leader_epoch"] for row in rows]),
        partition_epoch=int32_array([row["partition_epoch"] for row in rows]),
        recovery=int32_array([row.get("recovery", 0) for row in rows]),
        isr=pad_rows([replica_ids(row["isr"]) for row in rows]),
    )


@dataclass(frozen=True, slots=True)
class PartitionsAnswered:
    """What a broker answered for partitions of one topic: protocol error codes, int32[n]."""

    broker_id: int
    broker_epoch: int
    topic: str
    partitions: Int32s
    errors: Int32s


_Answered = TypeVar("_Answered", bound=PartitionsAnswered)


def _answered(kind: type[_Answered], body: dict[str, Any]) -> _Answered:
    partitions, errors = partition_numbers(body["partitions"]), int32_array(body["errors"])
    if len(partitions) != len(errors):
        raise ValueError(f"{len(errors)} errors for {len(partitions)} partitions")
    return kind(
        broker_id=int32(body["broker_id"]),
        broker_epoch=int64(body["broker_epoch"]),
        topic=text(body["topic"]),
        partitions=partitions,
        errors=errors,
    )


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered(PartitionsAnswered):
    """A broker was told who leads, and who is in sync."""


def leader_and_isr_answered(body: dict[str, Any]) -> LeaderAndIsrAnswered:
    """Read leader_and_isr_answered."""
    return _answered(LeaderAndIsrAnswered, body)


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered(PartitionsAnswered):
    """A broker was told to delete replicas."""


def stop_replica_answered(body: dict[str, Any]) -> StopReplicaAnswered:
    """Read stop_replica_answered."""
    return _answered(StopReplicaAnswered, body)


class Proposal(NamedTuple):
    """A partition that could be given back to its preferred replica now, on this broker."""

    topic: str
    partition: int
    broker: int


@dataclass(frozen=True, slots=True)
class LeaderImbalanceReported:
    """Per broker: partitions that prefer it as leader, and how many of those are led by another.

    proposals: in the order in which partitions are given back; of each broker only the first ones.
    behind: how many replicas that could be in sync are not, of brokers that have any.
    """

    preferred: dict[int, int]
    imbalanced: dict[int, int]
    proposals: tuple[Proposal, ...]
    behind: dict[int, int]


def leader_imbalance_reported(body: dict[str, Any]) -> LeaderImbalanceReported:
    """Read leader_imbalance_reported."""
    return LeaderImbalanceReported(
        preferred=_by_broker(body["preferred"]),
        imbalanced=_by_broker(body["imbalanced"]),
        proposals=tuple(
            Proposal(text(topic), int32(partition), int32(broker))
            for topic, partition, broker in body.get("proposals", ())
        ),
        behind={id_: count for id_, count in _by_broker(body.get("behind", {})).items() if count},
    )


def _by_broker(counts: dict[str, Any]) -> dict[int, int]:
    return {int32(int(broker)): int32(count) for broker, count in counts.items()}


@dataclass(frozen=True, slots=True)
class RaiseLeaderEpochsRequested:
    """The node announced as leader of a topic's partitions needs leader epochs of its own."""

    request_id: str
    topic: str


def raise_leader_epochs_requested(body: dict[str, Any]) -> RaiseLeaderEpochsRequested:
    """Read raise_leader_epochs_requested."""
    return RaiseLeaderEpochsRequested(
        request_id=text(body["request_id"]),
        topic=text(body["topic"]),
    )
