"""Kinds of events about consumer groups, by what their keys name: a group, a bucket, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.event_kinds import EventKind
from state.groups.buckets import bucket_of_key, group_bucket
from state.groups.payloads import offsets, ownership, requests

OF_A_GROUP: Mapping[EventKind, Callable[[dict[str, Any]], object]] = {
    EventKind.JOIN_GROUP_REQUESTED: requests.join_group_requested,
    EventKind.SYNC_GROUP_REQUESTED: requests.sync_group_requested,
    EventKind.LEAVE_GROUP_REQUESTED: requests.leave_group_requested,
    EventKind.OFFSET_COMMIT_REQUESTED: offsets.offset_commit_requested,
    EventKind.TXN_OFFSET_COMMIT_REQUESTED: offsets.txn_offset_commit_requested,
    EventKind.OFFSET_DELETE_REQUESTED: offsets.offset_delete_requested,
    EventKind.DELETE_GROUP_REQUESTED: requests.delete_group_requested,
    EventKind.OFFSETS_APPENDED: offsets.offsets_appended,
    EventKind.ASSIGNMENT_APPENDED: requests.assignment_appended,
    EventKind.COMMITTED_TOPICS_DELETED: offsets.committed_topics_deleted,
    EventKind.GROUP_OBSERVED: ownership.group_observed,
    EventKind.GROUP_RECORDS_REFUSED: offsets.group_records_refused,
    EventKind.GROUP_RECORDS_OVERTAKEN: offsets.group_records_overtaken,
}
"""The key is the group."""

OF_A_BUCKET: Mapping[EventKind, Callable[[dict[str, Any]], object]] = {
    EventKind.HEARTBEATS_RECEIVED: requests.heartbeats_received,
    EventKind.GROUP_TIMER_DUE: ownership.group_timer_due,
    EventKind.OFFSETS_EXPIRATION_DUE: offsets.offsets_expiration_due,
}
"""The key is the bucket, and all groups in it are of that bucket."""

OF_ALL_GROUPS: Mapping[EventKind, Callable[[dict[str, Any]], object]] = {
    EventKind.GROUP_COORDINATOR_CONFIGURED: ownership.group_coordinator_configured,
    EventKind.GROUP_PARTITIONS_ELECTED: ownership.group_partitions_elected,
    EventKind.GROUP_PARTITIONS_LOADED: ownership.group_partitions_loaded,
    EventKind.GROUP_PARTITIONS_RESIGNED: ownership.group_partitions_resigned,
    EventKind.TRANSACTION_COMPLETED: offsets.transaction_completed,
}
"""The key is empty."""

READERS: Mapping[EventKind, Callable[[dict[str, Any]], object]] = {
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
            beating = [one.group for one in payload.heartbeats]
            for group in (*beating, *(one.group for one in payload.synced)):
                if group_bucket(group) != bucket:
                    raise ValueError(f"group {group!r} is not of bucket {bucket}")
