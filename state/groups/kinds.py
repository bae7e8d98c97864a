"""Kinds of events about consumer groups, and whom their keys name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.groups import payloads, readers
from state.groups.buckets import bucket_of_key, group_bucket
from state.groups.payloads import GroupPayload

OF_A_GROUP: Mapping[str, Callable[[dict[str, Any]], GroupPayload]] = {
    "join_group_requested": readers.join_group_requested,
    "sync_group_requested": readers.sync_group_requested,
    "leave_group_requested": readers.leave_group_requested,
    "offset_commit_requested": readers.offset_commit_requested,
    "txn_offset_commit_requested": readers.txn_offset_commit_requested,
    "offset_delete_requested": readers.offset_delete_requested,
    "delete_group_requested": readers.delete_group_requested,
    "offsets_appended": readers.offsets_appended,
    "committed_topics_deleted": readers.committed_topics_deleted,
    "group_observed": readers.group_observed,
    "group_records_refused": readers.group_records_refused,
    "group_records_overtaken": readers.group_records_overtaken,
}
"""The key is the group."""

OF_A_BUCKET: Mapping[str, Callable[[dict[str, Any]], GroupPayload]] = {
    "heartbeats_received": readers.heartbeats_received,
    "group_timer_due": readers.group_timer_due,
    "offsets_expiration_due": readers.offsets_expiration_due,
}
"""The key is the bucket, and all groups in it are of that bucket."""

OF_ALL_GROUPS: Mapping[str, Callable[[dict[str, Any]], GroupPayload]] = {
    "group_coordinator_configured": readers.group_coordinator_configured,
    "group_partitions_elected": readers.group_partitions_elected,
    "group_partitions_loaded": readers.group_partitions_loaded,
    "group_partitions_resigned": readers.group_partitions_resigned,
    "transaction_completed": readers.transaction_completed,
}
"""The key is empty."""

READERS: Mapping[str, Callable[[dict[str, Any]], GroupPayload]] = {
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
        if isinstance(payload, payloads.HeartbeatsReceived):
            for heartbeat in payload.heartbeats:
                if group_bucket(heartbeat.group) != bucket:
                    raise ValueError(f"group {heartbeat.group!r} is not of bucket {bucket}")
