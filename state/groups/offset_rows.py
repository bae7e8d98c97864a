"""Committed offsets, as rows that events, decisions and states carry alike.

A row in JSON is [topic, partition, offset, leader_epoch, metadata, commit_ms, expire_ms, position].
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from state.json_values import int32, int64, optional_int64, text
from state.topic_partition import TopicPartition

_BEYOND_ALL_OFFSETS = 1 << 62
"""More than any offset, of a record or of an event."""

UNLOGGED = _BEYOND_ALL_OFFSETS
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


OffsetRows: TypeAlias = dict[TopicPartition, OffsetRow]

_Key = TypeVar("_Key", bound=Hashable)


def loaded_position(log_offset: int) -> int:
    """Return the position of a record that was read from `__consumer_offsets`."""
    return log_offset - _BEYOND_ALL_OFFSETS


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


def read_rows(values: Iterable[Any]) -> OffsetRows:
    """Return rows out of JSON; raises TypeError, ValueError."""
    return dict(read_row(one) for one in values)


def publish(
    committed: dict[_Key, OffsetRow], rows: Mapping[_Key, OffsetRow]
) -> dict[_Key, OffsetRow]:
    """Commit the rows of a transaction that ended, and return those that are visible now: where a
    row was appended later, that one stays.
    """
    visible = {}
    for key, row in rows.items():
        held = committed.get(key)
        if held is None or held.position < row.position:
            committed[key] = visible[key] = row
    return visible


def revert(
    pending: dict[int, OffsetRows], producer: int, partitions: Iterable[TopicPartition]
) -> None:
    """Take rows of a producer's open transaction back; without any left it has nothing pending."""
    rows = pending.get(producer, {})
    for partition in partitions:
        rows.pop(partition, None)
    if not rows:
        pending.pop(producer, None)
