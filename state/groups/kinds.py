"""Kinds of events about consumer groups, whom their keys name, and kinds of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from state.groups.buckets import bucket_of_key, group_bucket
from state.groups.payloads import offsets, ownership, requests


class ChangeKind(StrEnum):
    """What may change in a group, by the names that change_group gives."""

    GROUP_CREATED = "group_created"
    GROUP_LOADED = "group_loaded"
    GROUP_REMOVED = "group_removed"
    GROUP_EMPTIED = "group_emptied"
    MEMBER_ADDED = "member_added"
    MEMBER_UPDATED = "member_updated"
    MEMBER_REPLACED = "member_replaced"
    MEMBER_REMOVED = "member_removed"
    REBALANCE_STARTED = "rebalance_started"
    GENERATION_STARTED = "generation_started"
    ASSIGNMENT_DISTRIBUTED = "assignment_distributed"
    OFFSETS_COMMITTED = "offsets_committed"
    OFFSETS_REMOVED = "offsets_removed"
    TRANSACTION_PENDING = "transaction_pending"
    TRANSACTION_COMPLETED = "transaction_completed"
    TRANSACTION_REVERTED = "transaction_reverted"


OF_A_GROUP: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "join_group_requested": requests.join_group_requested,
    "sync_group_requested": requests.sync_group_requested,
    "leave_group_requested": requests.leave_group_requested,
    "offset_commit_requested": offsets.offset_commit_requested,
    "txn_offset_commit_requested": offsets.txn_offset_commit_requested,
    "offset_delete_requested": offsets.offset_delete_requested,
    "delete_group_requested": requests.delete_group_requested,
    "offsets_appended": offsets.offsets_appended,
    "committed_topics_deleted": offsets.committed_topics_deleted,
    "group_observed": ownership.group_observed,
    "group_records_refused": offsets.group_records_refused,
    "group_records_overtaken": offsets.group_records_overtaken,
}
"""The key is the group."""

OF_A_BUCKET: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "heartbeats_received": requests.heartbeats_received,
    "group_timer_due": ownership.group_timer_due,
    "offsets_expiration_due": offsets.offsets_expiration_due,
}
"""The key is the bucket, and all groups in it are of that bucket."""

OF_ALL_GROUPS: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "group_coordinator_configured": ownership.group_coordinator_configured,
    "group_partitions_elected": ownership.group_partitions_elected,
    "group_partitions_loaded": ownership.group_partitions_loaded,
    "group_partitions_resigned": ownership.group_partitions_resigned,
    "transaction_completed": offsets.transaction_completed,
}
"""The key is empty."""

READERS: Mapping[str, Callable[[dict[str, Any]], object]] = {
    **OF_A_GROUP,
    **OF_A_BUCKET,
    **OF_ALL_GROUPS,
}


def check_key(kind: str, key: str, payload: object) -> None:
    """Raise ValueError when a group event's key does not name what its payload is about."""
    if kind in OF_A_GROUP:
        group = getattr(payload, "group", key)
        if group != key:
            raise ValueError(f"payload is about group {group!r}, the key says {key!r}")
    elif kind in OF_A_BUCKET:
        bucket = bucket_of_key(key)
        if isinstance(payload, requests.HeartbeatsReceived):
            for heartbeat in payload.heartbeats:
                if group_bucket(heartbeat.group) != bucket:
                    raise ValueError(f"group {heartbeat.group!r} is not of bucket {bucket}")
