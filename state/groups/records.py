"""The records of `__consumer_offsets` that a group's changes are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from state.groups.group import Group
from state.groups.image_changes import GroupView
from state.groups.member import member_fields
from state.topic_partition import TopicPartition

COMMITTED_OFFSETS = "committed_offsets"
"""The type of a record that stands for those of all offsets in its step's first change."""


def group_metadata(group: Group, timestamp_ms: int) -> dict[str, Any]:
    """Return the record of a group as it is; of a group with members, all have a generation."""
    protocol = group.protocol or ""
    members = [
        {
            **member_fields(one),
            "subscription": one.metadata(protocol),
            "assignment": one.assignment,
        }
        for one in group.members.values()
    ]
    since_ms = -1 if group.state_since_ms is None else group.state_since_ms
    return _metadata(group, since_ms, members, timestamp_ms)


def assigned_metadata(
    view: GroupView, assignments: Mapping[str, str], timestamp_ms: int
) -> dict[str, Any]:
    """Return the record of a group as it is once a generation that waits for it gets its
    assignment.
    """
    members = [
        {
            "member": name,
            "instance": one.instance,
            "client": one.client,
            "host": one.host,
            "session_timeout_ms": one.session_timeout_ms,
            "rebalance_timeout_ms": one.rebalance_timeout_ms,
            "subscription": one.metadata,
            "assignment": assignments.get(name, ""),
        }
        for name, one in view.members.items()
    ]
    return _metadata(view, view.completing_since_ms, members, timestamp_ms)


def _metadata(
    group: Group | GroupView, since_ms: int, members: list[dict[str, Any]], timestamp_ms: int
) -> dict[str, Any]:
    value = {
        "protocol_type": group.protocol_type or "",
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "state_since_ms": since_ms,
        "members": members,
    }
    return {"type": "group_metadata", "timestamp_ms": timestamp_ms, "value": value}


def group_tombstone(timestamp_ms: int) -> dict[str, Any]:
    """Return the record that ends a group."""
    return {"type": "group_metadata", "timestamp_ms": timestamp_ms, "value": None}


def committed_offsets(timestamp_ms: int) -> list[dict[str, Any]]:
    """Return what stands for the records of a step's offsets, which are in its first change."""
    return [{"type": COMMITTED_OFFSETS, "timestamp_ms": timestamp_ms}]


def offset_tombstones(
    partitions: Iterable[TopicPartition], timestamp_ms: int
) -> list[dict[str, Any]]:
    """Return the records that end committed offsets."""
    return [
        {
            "type": "offset",
            "timestamp_ms": timestamp_ms,
            "topic": topic,
            "partition": partition,
            "value": None,
        }
        for topic, partition in partitions
    ]
