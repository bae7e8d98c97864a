"""The records of `__consumer_offsets` that a group's changes are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from state.groups.group import Group
from state.groups.offset_rows import OffsetRow, TopicPartition


def group_metadata(group: Group, timestamp_ms: int) -> dict[str, Any]:
    """Return the record of a group as it is; of a group with members, all have a generation."""
    protocol = group.protocol or ""
    members = [
        {
            "member": one.id,
            "instance": one.instance,
            "client": one.client,
            "host": one.host,
            "rebalance_timeout_ms": one.rebalance_timeout_ms,
            "session_timeout_ms": one.session_timeout_ms,
            "subscription": one.metadata(protocol),
            "assignment": one.assignment,
        }
        for one in group.members.values()
    ]
    value = {
        "protocol_type": group.protocol_type or "",
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "state_since_ms": -1 if group.state_since_ms is None else group.state_since_ms,
        "members": members,
    }
    return {"type": "group_metadata", "timestamp_ms": timestamp_ms, "value": value}


def group_tombstone(timestamp_ms: int) -> dict[str, Any]:
    """Return the record that ends a group."""
    return {"type": "group_metadata", "timestamp_ms": timestamp_ms, "value": None}


def offset_records(
    rows: Mapping[TopicPartition, OffsetRow], timestamp_ms: int
) -> list[dict[str, Any]]:
    """Return the records of committed offsets."""
    return [
        {
            "type": "offset",
            "timestamp_ms": timestamp_ms,
            "topic": topic,
            "partition": partition,
            "value": {
                "offset": row.offset,
                "leader_epoch": row.leader_epoch,
                "metadata": row.metadata,
                "commit_ms": row.commit_ms,
                "expire_ms": row.expire_ms,
            },
        }
        for (topic, partition), row in rows.items()
    ]


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
