"""Payloads about offsets: commits, deletions, transactions, and records that were refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from state.bodies import Undo
from state.groups.offset_rows import OffsetRow, OffsetRows, read_row, read_rows
from state.groups.payloads.requests import GroupRequest, request_fields
from state.groups.tables import GroupApi
from state.json_values import (
    int32,
    int32_tuple,
    int64,
    optional_int64,
    optional_text,
    text,
)
from state.topic_partition import TopicPartition


class OffsetToCommit(NamedTuple):
    """What a client commits of a partition; leader_epoch is -1 where it said none. commit_ms: None
    for the time of the event, which all clients but the first ones leave it at (version 1).
    """

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int | None = None


def _offsets_to_commit(values: Iterable[Any]) -> tuple[OffsetToCommit, ...]:
    return tuple(
        OffsetToCommit(
            (text(topic), int32(partition)),
            int64(offset),
            int32(leader_epoch),
            text(metadata),
            *map(int64, commit_ms),
        )
        for topic, partition, offset, leader_epoch, metadata, *commit_ms in values
    )


@dataclass(frozen=True, slots=True)
class OffsetCommitRequested(GroupRequest):
    """OffsetCommit; generation is -1 for who is no member. offsets: as committed, in order.

    retention_ms: None unless the request (versions 2 to 4) brings its own.
    """

    api = GroupApi.OFFSET_COMMIT

    member: str
    instance: str | None
    generation: int
    retention_ms: int | None
    offsets: tuple[OffsetToCommit, ...]


def offset_commit_requested(body: dict[str, Any]) -> OffsetCommitRequested:
    """Read offset_commit_requested."""
    retention_ms = body.get("retention_ms")
    return OffsetCommitRequested(
        *request_fields(body),
        text(body["member"]),
        optional_text(body.get("instance")),
        int32(body["generation"]),
        None if retention_ms in (None, -1) else int64(retention_ms),
        _offsets_to_commit(body["offsets"]),
    )


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequested(GroupRequest):
    """TxnOffsetCommit; verification_error: what asking the transaction coordinator ended with."""

    api = GroupApi.TXN_OFFSET_COMMIT

    producer_id: int
    producer_epoch: int
    member: str
    instance: str | None
    generation: int
    verification_error: int
    offsets: tuple[OffsetToCommit, ...]


def txn_offset_commit_requested(body: dict[str, Any]) -> TxnOffsetCommitRequested:
    """Read txn_offset_commit_requested."""
    return TxnOffsetCommitRequested(
        *request_fields(body),
        int64(body["producer_id"]),
        int32(body["producer_epoch"]),
        text(body["member"]),
        optional_text(body.get("instance")),
        int32(body["generation"]),
        int32(body.get("verification_error", 0)),
        _offsets_to_commit(body["offsets"]),
    )


@dataclass(frozen=True, slots=True)
class OffsetsAppended:
    """Offsets that were committed and are in `__consumer_offsets`, the newest of each partition.

    offsets: with the time of the commit; in the order of their commits.
    """

    partition: int
    group: str
    offsets: tuple[OffsetToCommit, ...]


def offsets_appended(body: dict[str, Any]) -> OffsetsAppended:
    """Read offsets_appended; raises ValueError where one is without its time."""
    offsets = _offsets_to_commit(body["offsets"])
    if any(one.commit_ms is None for one in offsets):
        raise ValueError("an offset that was appended says when it was committed")
    return OffsetsAppended(int32(body["partition"]), text(body["group"]), offsets)


@dataclass(frozen=True, slots=True)
class CommittedTopicsDeleted:
    """Topics ceased to exist that a group may have committed offsets of."""

    partition: int
    group: str
    topics: tuple[str, ...]


def committed_topics_deleted(body: dict[str, Any]) -> CommittedTopicsDeleted:
    """Read committed_topics_deleted."""
    return CommittedTopicsDeleted(
        int32(body["partition"]),
        text(body["group"]),
        tuple(text(topic) for topic in body["topics"]),
    )


def _partitions(values: Iterable[Any]) -> tuple[TopicPartition, ...]:
    return tuple((text(topic), int32(partition)) for topic, partition in values)


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequested(GroupRequest):
    """OffsetDelete of one group."""

    api = GroupApi.OFFSET_DELETE

    partitions: tuple[TopicPartition, ...]


def offset_delete_requested(body: dict[str, Any]) -> OffsetDeleteRequested:
    """Read offset_delete_requested."""
    return OffsetDeleteRequested(*request_fields(body), _partitions(body["partitions"]))


@dataclass(frozen=True, slots=True)
class OffsetsExpirationDue:
    """It is time to look for expired offsets in a bucket."""


def offsets_expiration_due(body: dict[str, Any]) -> OffsetsExpirationDue:
    """Read offsets_expiration_due."""
    return OffsetsExpirationDue()


def _write(values: Any) -> tuple[int, int]:
    offset, index = values
    return int64(offset), int32(index)


@dataclass(frozen=True, slots=True)
class GroupRecordsRefused:
    """Records of a decision could not be appended.

    write: event offset and index of the write. replies: bodies of the replies that waited for it.
    undo: as in the decision. offsets: what is appended for each partition of the write, None where
    nothing is.
    """

    partition: int
    group: str
    write: tuple[int, int]
    error: int
    replies: tuple[dict[str, object], ...]
    undo: Undo | None
    offsets: dict[TopicPartition, OffsetRow | None]


def group_records_refused(body: dict[str, Any]) -> GroupRecordsRefused:
    """Read group_records_refused."""
    held: dict[TopicPartition, Any] = {
        (text(topic), int32(partition)): None if row is None else read_row(row)[1]
        for topic, partition, row in body["offsets"]
    }
    return GroupRecordsRefused(
        int32(body["partition"]),
        text(body["group"]),
        _write(body["write"]),
        int32(body["error"]),
        tuple({**reply, "request_id": text(reply["request_id"])} for reply in body["replies"]),
        None if body.get("undo") is None else cast("Undo", dict(body["undo"])),
        held,
    )


@dataclass(frozen=True, slots=True)
class GroupRecordsOvertaken:
    """Offset records came to stand behind later ones of the same group in `__consumer_offsets`."""

    partition: int
    group: str
    write: tuple[int, int]
    producer_id: int | None
    offsets: OffsetRows


def group_records_overtaken(body: dict[str, Any]) -> GroupRecordsOvertaken:
    """Read group_records_overtaken."""
    return GroupRecordsOvertaken(
        int32(body["partition"]),
        text(body["group"]),
        _write(body["write"]),
        optional_int64(body.get("producer_id")),
        read_rows(body["offsets"]),
    )


@dataclass(frozen=True, slots=True)
class TransactionCompleted:
    """A commit or abort marker was written to partitions of `__consumer_offsets`."""

    producer_id: int
    committed: bool
    partitions: tuple[int, ...]


def transaction_completed(body: dict[str, Any]) -> TransactionCompleted:
    """Read transaction_completed."""
    committed = body["committed"]
    if not isinstance(committed, bool):
        raise TypeError(f"committed is {committed!r}, neither true nor false")
    return TransactionCompleted(
        int64(body["producer_id"]), committed, int32_tuple(body["partitions"])
    )
