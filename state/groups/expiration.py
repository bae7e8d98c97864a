"""Offsets that nobody has committed or used for too long (KIP-211)."""

from __future__ import annotations

from state.groups.group import Group, empty_since_ms
from state.groups.offset_rows import OffsetRow
from state.groups.offsets import remove_offsets
from state.groups.states import GroupState
from state.groups.subscription import CONSUMER
from state.groups.turn import Turn
from state.topic_partition import TopicPartition


def expire(turn: Turn, group: Group) -> bool:
    """Remove expired offsets, and a group that has nothing left; return whether it is gone.

    An offset stays while an open transaction has a newer one (as with Kafka's new coordinator,
    OffsetMetadataManager.cleanupExpiredOffsets): the transaction's marker may stand ahead of the
    tombstone, which would then take the newer one along.
    """
    if group.state is GroupState.DEAD:
        return False
    retention_ms = turn.config.offsets_retention_ms
    in_transactions = {one for rows in group.store.pending.values() for one in rows}
    expired = sorted(
        partition
        for partition, row in _candidates(group)
        if partition not in in_transactions and _expires_ms(group, row, retention_ms) <= turn.now_ms
    )
    for partition in expired:
        del group.store.rows[partition]
    return remove_offsets(turn, group, expired, reason="expired")


def _candidates(group: Group) -> list[tuple[TopicPartition, OffsetRow]]:
    """Return the offsets that may expire in the group's state.

    All of an empty group and of one that never had members; of a stable consumer group those of
    topics that it is not subscribed to.
    """
    rows = group.store.rows
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return list(rows.items())
    if (
        group.state is GroupState.STABLE
        and group.protocol_type == CONSUMER
        and group.subscribed is not None
    ):
        subscribed = frozenset(group.subscribed)
        return [(one, row) for one, row in rows.items() if one[0] not in subscribed]
    return []


def _expires_ms(group: Group, row: OffsetRow, retention_ms: int) -> int:
    """Return when an offset expires: at its own time, or after the retention since the group became
    empty, or else since it was committed.
    """
    if row.expire_ms is not None:
        return row.expire_ms
    since_ms = empty_since_ms(group)
    return (row.commit_ms if since_ms is None else since_ms) + retention_ms
