"""Functions that read the payloads of group events from JSON objects.

Each raises KeyError, TypeError or ValueError when a field is missing or not of its type.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from state.groups import payloads
from state.groups.config import CONFIG_KEYS
from state.groups.offset_rows import TopicPartition, read_row, read_rows
from state.json_values import text, whole_number


def base64_text(value: object) -> str:
    """Return a string that is base64; raises TypeError, ValueError."""
    base64.b64decode(text(value), validate=True)
    return str(value)


def _optional_text(value: object) -> str | None:
    return None if value is None else text(value)


def _numbers(values: Iterable[object]) -> tuple[int, ...]:
    return tuple(whole_number(value) for value in values)


def _request(body: dict[str, Any]) -> tuple[str, int, str, int]:
    return (
        text(body["request_id"]),
        whole_number(body["partition"]),
        text(body["group"]),
        whole_number(body["version"]),
    )


def _partitions(values: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple((text(topic), whole_number(partition)) for topic, partition in values)


def join_group_requested(body: dict[str, Any]) -> payloads.JoinGroupRequested:
    """Read join_group_requested."""
    return payloads.JoinGroupRequested(
        *_request(body),
        text(body["member"]),
        text(body["new_member"]),
        _optional_text(body.get("instance")),
        text(body["client"]),
        text(body["host"]),
        whole_number(body["session_timeout_ms"]),
        whole_number(body["rebalance_timeout_ms"]),
        text(body["protocol_type"]),
        tuple((text(name), base64_text(metadata)) for name, metadata in body["protocols"]),
        _optional_text(body.get("reason")) or "not provided",
    )


def sync_group_requested(body: dict[str, Any]) -> payloads.SyncGroupRequested:
    """Read sync_group_requested."""
    return payloads.SyncGroupRequested(
        *_request(body),
        whole_number(body["generation"]),
        text(body["member"]),
        _optional_text(body.get("instance")),
        _optional_text(body.get("protocol_type")),
        _optional_text(body.get("protocol")),
        {text(member): base64_text(assignment) for member, assignment in body["assignments"]},
    )


def leave_group_requested(body: dict[str, Any]) -> payloads.LeaveGroupRequested:
    """Read leave_group_requested."""
    members = tuple(
        payloads.LeavingMember(
            text(one["member"]),
            _optional_text(one.get("instance")),
            _optional_text(one.get("reason")) or "",
        )
        for one in body["members"]
    )
    return payloads.LeaveGroupRequested(*_request(body), members)


def _commits(values: Iterable[Any]) -> tuple[tuple[TopicPartition, int, int, str], ...]:
    return tuple(
        (
            (text(topic), whole_number(partition)),
            whole_number(offset),
            whole_number(leader_epoch),
            text(metadata),
        )
        for topic, partition, offset, leader_epoch, metadata in values
    )


def offset_commit_requested(body: dict[str, Any]) -> payloads.OffsetCommitRequested:
    """Read offset_commit_requested."""
    retention_ms = body.get("retention_ms")
    return payloads.OffsetCommitRequested(
        *_request(body),
        text(body["member"]),
        _optional_text(body.get("instance")),
        whole_number(body["generation"]),
        None if retention_ms in (None, -1) else whole_number(retention_ms),
        _commits(body["offsets"]),
    )


def txn_offset_commit_requested(body: dict[str, Any]) -> payloads.TxnOffsetCommitRequested:
    """Read txn_offset_commit_requested."""
    return payloads.TxnOffsetCommitRequested(
        *_request(body),
        whole_number(body["producer_id"]),
        whole_number(body["producer_epoch"]),
        text(body["member"]),
        _optional_text(body.get("instance")),
        whole_number(body["generation"]),
        whole_number(body.get("verification_error", 0)),
        _commits(body["offsets"]),
    )


def offsets_appended(body: dict[str, Any]) -> payloads.OffsetsAppended:
    """Read offsets_appended."""
    return payloads.OffsetsAppended(
        whole_number(body["partition"]),
        text(body["group"]),
        tuple(
            (*commit, whole_number(values[-1]))
            for commit, values in zip(
                _commits(values[:-1] for values in body["offsets"]), body["offsets"], strict=True
            )
        ),
    )


def committed_topics_deleted(body: dict[str, Any]) -> payloads.CommittedTopicsDeleted:
    """Read committed_topics_deleted."""
    return payloads.CommittedTopicsDeleted(
        whole_number(body["partition"]),
        text(body["group"]),
        tuple(text(topic) for topic in body["topics"]),
    )


def offset_delete_requested(body: dict[str, Any]) -> payloads.OffsetDeleteRequested:
    """Read offset_delete_requested."""
    return payloads.OffsetDeleteRequested(*_request(body), _partitions(body["partitions"]))


def delete_group_requested(body: dict[str, Any]) -> payloads.DeleteGroupRequested:
    """Read delete_group_requested."""
    return payloads.DeleteGroupRequested(*_request(body))


def _observed_member(one: dict[str, Any]) -> payloads.ObservedMember:
    return payloads.ObservedMember(
        text(one["member"]),
        _optional_text(one["instance"]),
        text(one["client"]),
        text(one["host"]),
        whole_number(one["session_timeout_ms"]),
        whole_number(one["rebalance_timeout_ms"]),
        base64_text(one["metadata"]),
        base64_text(one["assignment"]),
    )


def group_observed(body: dict[str, Any]) -> payloads.GroupObserved:
    """Read group_observed."""
    found = body["metadata"]
    metadata = None
    if found is not None:
        since_ms = found["state_since_ms"]
        metadata = payloads.ObservedMetadata(
            whole_number(found["generation"]),
            text(found["protocol_type"]),
            _optional_text(found["protocol"]),
            _optional_text(found["leader"]),
            None if since_ms is None else whole_number(since_ms),
            tuple(_observed_member(one) for one in found["members"]),
        )
    return payloads.GroupObserved(
        whole_number(body["partition"]),
        whole_number(body["epoch"]),
        text(body["group"]),
        metadata,
        read_rows(body["offsets"]),
        {whole_number(producer): read_rows(rows) for producer, rows in body["pending"]},
    )


def _write(values: Any) -> tuple[int, int]:
    offset, index = values
    return whole_number(offset), whole_number(index)


def group_records_refused(body: dict[str, Any]) -> payloads.GroupRecordsRefused:
    """Read group_records_refused."""
    held: dict[TopicPartition, Any] = {
        (text(topic), whole_number(partition)): None if row is None else read_row(row)[1]
        for topic, partition, row in body["offsets"]
    }
    return payloads.GroupRecordsRefused(
        whole_number(body["partition"]),
        text(body["group"]),
        _write(body["write"]),
        whole_number(body["error"]),
        tuple({**reply, "request_id": text(reply["request_id"])} for reply in body["replies"]),
        None if body.get("undo") is None else dict(body["undo"]),
        held,
    )


def group_records_overtaken(body: dict[str, Any]) -> payloads.GroupRecordsOvertaken:
    """Read group_records_overtaken."""
    producer = body.get("producer_id")
    return payloads.GroupRecordsOvertaken(
        whole_number(body["partition"]),
        text(body["group"]),
        _write(body["write"]),
        None if producer is None else whole_number(producer),
        read_rows(body["offsets"]),
    )


def heartbeats_received(body: dict[str, Any]) -> payloads.HeartbeatsReceived:
    """Read heartbeats_received."""
    return payloads.HeartbeatsReceived(
        tuple(
            payloads.Heartbeat(
                text(group),
                text(member),
                _optional_text(instance),
                whole_number(generation),
                *map(whole_number, silent_ms),
            )
            for group, member, instance, generation, *silent_ms in body["heartbeats"]
        )
    )


def group_timer_due(body: dict[str, Any]) -> payloads.GroupTimerDue:
    """Read group_timer_due."""
    return payloads.GroupTimerDue(text(body["timer"]), whole_number(body["deadline_ms"]))


def offsets_expiration_due(body: dict[str, Any]) -> payloads.OffsetsExpirationDue:
    """Read offsets_expiration_due."""
    return payloads.OffsetsExpirationDue()


def group_coordinator_configured(body: dict[str, Any]) -> payloads.GroupCoordinatorConfigured:
    """Read group_coordinator_configured."""
    return payloads.GroupCoordinatorConfigured(checked_config(body["config"]))


def checked_config(config: dict[str, object]) -> dict[str, object]:
    """Return the keys that decisions depend on; raises TypeError for one that is no number."""
    return {key: whole_number(config[key]) for key in CONFIG_KEYS if key in config}


def group_partitions_elected(body: dict[str, Any]) -> payloads.GroupPartitionsElected:
    """Read group_partitions_elected."""
    return payloads.GroupPartitionsElected(
        _numbers(body["partitions"]), whole_number(body["epoch"])
    )


def group_partitions_loaded(body: dict[str, Any]) -> payloads.GroupPartitionsLoaded:
    """Read group_partitions_loaded."""
    return payloads.GroupPartitionsLoaded(_numbers(body["partitions"]), whole_number(body["epoch"]))


def group_partitions_resigned(body: dict[str, Any]) -> payloads.GroupPartitionsResigned:
    """Read group_partitions_resigned."""
    epoch = body["epoch"]
    return payloads.GroupPartitionsResigned(
        _numbers(body["partitions"]),
        None if epoch is None else whole_number(epoch),
        body.get("unheard") is True,
    )


def transaction_completed(body: dict[str, Any]) -> payloads.TransactionCompleted:
    """Read transaction_completed."""
    committed = body["committed"]
    if not isinstance(committed, bool):
        raise TypeError(f"committed is {committed!r}, neither true nor false")
    return payloads.TransactionCompleted(
        whole_number(body["producer_id"]), committed, _numbers(body["partitions"])
    )
