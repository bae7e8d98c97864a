"""Committed offsets, as rows that events, decisions and states carry alike.

A row in JSON is [topic, partition, offset, leader_epoch, metadata, commit_ms, expire_ms, position].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from state.json_values import int32, int64, optional_int64, text

TopicPartition: TypeAlias = tuple[str, int]

LOADED_BEFORE = 1 << 62

UNLOGGED = LOADED_BEFORE
"""Position of a row that is committed and that the event log does not have, or not yet: after all
that is decided.
"""


class OffsetRow(NamedTuple):
    """A committed offset.

    leader_epoch: -1 where the client said none. expire_ms: None unless the commit brought its own
    retention. position: its place in the order of appended records; what was loaded from
    `__consumer_offsets` stands below zero, what was decided since is at the offset of its event.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None
    position: int


def loaded_position(log_offset: int) -> int:
    """Return the position of a record that was read from `__consumer_offsets`."""
    return log_offset - LOADED_BEFORE


def row_values(partition: TopicPartition, row: OffsetRow) -> list[Any]:
    """Return a row as it stands in JSON."""
    return [*partition, *row]


def rows_values(rows: Mapping[TopicPartition, OffsetRow]) -> list[list[Any]]:
    """Return rows as they stand in JSON, in the mapping's order."""
    return [[*partition, *row] for partition, row in rows.items()]


def read_row(values: Any) -> tuple[TopicPartition, OffsetRow]:
    """Return a row out of JSON; raises TypeError, ValueError."""
    topic, partition, offset, leader_epoch, metadata, commit_ms, expire_ms, position = values
    row = OffsetRow(
        int64(offset),
        int32(leader_epoch),
        text(metadata),
        int64(commit_ms),
        optional_int64(expire_ms),
        int64(position),
    )
    return (text(topic), int32(partition)), row


def read_rows(values: Iterable[Any]) -> dict[TopicPartition, OffsetRow]:
    """Return rows out of JSON; raises TypeError, ValueError."""
    return dict(read_row(one) for one in values)
