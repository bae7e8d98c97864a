"""Payloads about partitions that are coordinated here: ownership, configuration, loaded groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.groups.config import checked_group_config
from state.groups.offset_rows import OffsetRows, read_rows
from state.json_values import (
    base64_text,
    int32,
    int32_tuple,
    int64,
    optional_bool,
    optional_int32,
    optional_int64,
    optional_text,
    text,
)


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """A member as `__consumer_offsets` has it; metadata is that of the group's protocol."""

    member: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: str
    assignment: str


def _observed_member(one: dict[str, Any]) -> ObservedMember:
    return ObservedMember(
        text(one["member"]),
        optional_text(one["instance"]),
        text(one["client"]),
        text(one["host"]),
        int64(one["session_timeout_ms"]),
        int64(one["rebalance_timeout_ms"]),
        base64_text(one["metadata"]),
        base64_text(one["assignment"]),
    )


@dataclass(frozen=True, slots=True)
class ObservedMetadata:
    """A group's record in `__consumer_offsets`; state_since_ms is None where it says nothing."""

    generation: int
    protocol_type: str
    protocol: str | None
    leader: str | None
    state_since_ms: int | None
    members: tuple[ObservedMember, ...]


@dataclass(frozen=True, slots=True)
class GroupObserved:
    """What `__consumer_offsets` holds of a group; metadata is None where there are offsets only.

    pending: offsets of transactions without a marker, by producer id.
    """

    partition: int
    epoch: int
    group: str
    metadata: ObservedMetadata | None
    offsets: OffsetRows
    pending: dict[int, OffsetRows]


def group_observed(body: dict[str, Any]) -> GroupObserved:
    """Read group_observed."""
    found = body["metadata"]
    metadata = None
    if found is not None:
        metadata = ObservedMetadata(
            int32(found["generation"]),
            text(found["protocol_type"]),
            optional_text(found["protocol"]),
            optional_text(found["leader"]),
            optional_int64(found["state_since_ms"]),
            tuple(_observed_member(one) for one in found["members"]),
        )
    return GroupObserved(
        int32(body["partition"]),
        int32(body["epoch"]),
        text(body["group"]),
        metadata,
        read_rows(body["offsets"]),
        {int64(producer): read_rows(rows) for producer, rows in body["pending"]},
    )


@dataclass(frozen=True, slots=True)
class GroupPartitionsElected:
    """We are now coordinator of partitions of `__consumer_offsets`; their groups are loading."""

    partitions: tuple[int, ...]
    epoch: int


def group_partitions_elected(body: dict[str, Any]) -> GroupPartitionsElected:
    """Read group_partitions_elected."""
    return GroupPartitionsElected(int32_tuple(body["partitions"]), int32(body["epoch"]))


@dataclass(frozen=True, slots=True)
class GroupPartitionsLoaded:
    """All groups of these partitions have been observed."""

    partitions: tuple[int, ...]
    epoch: int


def group_partitions_loaded(body: dict[str, Any]) -> GroupPartitionsLoaded:
    """Read group_partitions_loaded."""
    return GroupPartitionsLoaded(int32_tuple(body["partitions"]), int32(body["epoch"]))


@dataclass(frozen=True, slots=True)
class GroupPartitionsResigned:
    """We are no longer coordinator of these partitions; epoch is None when it is not known.

    unheard: last-heard times are not known, so no session ends by it, nor whether the topic is the
    same, so epochs begin anew. every: nor of any other partition.
    """

    partitions: tuple[int, ...]
    epoch: int | None
    unheard: bool = False
    every: bool = False


def group_partitions_resigned(body: dict[str, Any]) -> GroupPartitionsResigned:
    """Read group_partitions_resigned."""
    return GroupPartitionsResigned(
        int32_tuple(body["partitions"]),
        optional_int32(body["epoch"]),
        bool(optional_bool(body.get("unheard"))),
        bool(optional_bool(body.get("every"))),
    )


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfigured:
    """The configuration that decisions about groups depend on, by Kafka's names."""

    config: dict[str, object]


def group_coordinator_configured(body: dict[str, Any]) -> GroupCoordinatorConfigured:
    """Read group_coordinator_configured."""
    return GroupCoordinatorConfigured(checked_group_config(body["config"]))


@dataclass(frozen=True, slots=True)
class GroupTimerDue:
    """The armed deadline of a bucket has come."""

    timer: str
    deadline_ms: int


def group_timer_due(body: dict[str, Any]) -> GroupTimerDue:
    """Read group_timer_due."""
    return GroupTimerDue(text(body["timer"]), int64(body["deadline_ms"]))
