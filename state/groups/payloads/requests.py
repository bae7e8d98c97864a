"""Payloads of requests about one group, and of heartbeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from state.groups.tables import GroupApi
from state.json_values import (
    base64_text,
    int32,
    int64,
    optional_text,
    text,
)


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A request about one group that waits for an answer.

    api: which request it is. partition: the group's partition of `__consumer_offsets`. version: of
    the request.
    """

    api: ClassVar[GroupApi]

    request_id: str
    partition: int
    group: str
    version: int


def request_fields(body: dict[str, Any]) -> tuple[str, int, str, int]:
    """Return the fields of a GroupRequest."""
    return (
        text(body["request_id"]),
        int32(body["partition"]),
        text(body["group"]),
        int32(body["version"]),
    )


Protocols: TypeAlias = tuple[tuple[str, str], ...]
"""Names of protocols with the member's metadata (base64), the preferred one first."""


@dataclass(frozen=True, slots=True)
class JoinGroupRequested(GroupRequest):
    """JoinGroup; member is "" when the client has no id yet, new_member the id it gets then."""

    api = GroupApi.JOIN_GROUP

    member: str
    new_member: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str


def join_group_requested(body: dict[str, Any]) -> JoinGroupRequested:
    """Read join_group_requested."""
    return JoinGroupRequested(
        *request_fields(body),
        text(body["member"]),
        text(body["new_member"]),
        optional_text(body.get("instance")),
        text(body["client"]),
        text(body["host"]),
        int64(body["session_timeout_ms"]),
        int64(body["rebalance_timeout_ms"]),
        text(body["protocol_type"]),
        tuple((text(name), base64_text(metadata)) for name, metadata in body["protocols"]),
        optional_text(body.get("reason")) or "not provided",
    )


@dataclass(frozen=True, slots=True)
class SyncGroupRequested(GroupRequest):
    """SyncGroup; protocol_type and protocol are None below version 5."""

    api = GroupApi.SYNC_GROUP

    generation: int
    member: str
    instance: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, str]


def sync_group_requested(body: dict[str, Any]) -> SyncGroupRequested:
    """Read sync_group_requested."""
    return SyncGroupRequested(
        *request_fields(body),
        int32(body["generation"]),
        text(body["member"]),
        optional_text(body.get("instance")),
        optional_text(body.get("protocol_type")),
        optional_text(body.get("protocol")),
        _assignments(body["assignments"]),
    )


def _assignments(rows: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    return {text(member): base64_text(assignment) for member, assignment in rows}


@dataclass(frozen=True, slots=True)
class AssignmentAppended:
    """What the leader of a generation assigned, by member, is in `__consumer_offsets`."""

    partition: int
    group: str
    generation: int
    assignments: dict[str, str]


def assignment_appended(body: dict[str, Any]) -> AssignmentAppended:
    """Read assignment_appended."""
    return AssignmentAppended(
        int32(body["partition"]),
        text(body["group"]),
        int32(body["generation"]),
        _assignments(body["assignments"]),
    )


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """Who leaves, and why, "" where it is not said (KIP-800); member is "" when an administrator
    removes a static member.
    """

    member: str
    instance: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveGroupRequested(GroupRequest):
    """LeaveGroup; one member below version 3."""

    api = GroupApi.LEAVE_GROUP

    members: tuple[LeavingMember, ...]


def leave_group_requested(body: dict[str, Any]) -> LeaveGroupRequested:
    """Read leave_group_requested."""
    members = tuple(
        LeavingMember(
            text(one["member"]),
            optional_text(one.get("instance")),
            optional_text(one.get("reason")) or "",
        )
        for one in body["members"]
    )
    return LeaveGroupRequested(*request_fields(body), members)


@dataclass(frozen=True, slots=True)
class DeleteGroupRequested(GroupRequest):
    """DeleteGroups, one event for each group."""

    api = GroupApi.DELETE_GROUP


def delete_group_requested(body: dict[str, Any]) -> DeleteGroupRequested:
    """Read delete_group_requested."""
    return DeleteGroupRequested(*request_fields(body))


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of a member, or another request that counts as one.

    silent_ms: how long before the event the last one came; the member was not silent for a session
    until then. None: at the event's time, and nothing is said of before.
    """

    group: str
    member: str
    instance: str | None
    generation: int
    silent_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SyncsCame:
    """Members whose SyncGroup of a generation came in time, and was answered from the image."""

    group: str
    generation: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeartbeatsReceived:
    """Heartbeats, and SyncGroups, of members of one bucket's groups since the last such event."""

    heartbeats: tuple[Heartbeat, ...]
    synced: tuple[SyncsCame, ...] = ()


def heartbeats_received(body: dict[str, Any]) -> HeartbeatsReceived:
    """Read heartbeats_received."""
    return HeartbeatsReceived(
        tuple(
            Heartbeat(
                text(group),
                text(member),
                optional_text(instance),
                int32(generation),
                *map(int64, silent_ms),
            )
            for group, member, instance, generation, *silent_ms in body["heartbeats"]
        ),
        tuple(
            SyncsCame(text(group), int32(generation), tuple(map(text, members)))
            for group, generation, members in body.get("synced", ())
        ),
    )
