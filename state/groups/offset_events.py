"""Events about the offsets of groups: appended, deleted with their topic, expired, and transactions
that end.
"""

from __future__ import annotations

from state.decisions import Decision
from state.events import Event
from state.groups.buckets import bucket_of_key
from state.groups.expiration import expire
from state.groups.group import Group
from state.groups.group_turn import with_group, with_groups, with_name
from state.groups.offsets import complete_transaction, remove_topics, take_appended
from state.groups.payloads.offsets import (
    CommittedTopicsDeleted,
    OffsetsAppended,
    OffsetsExpirationDue,
    TransactionCompleted,
)
from state.groups.requests import create
from state.groups.slot import GroupSlot
from state.groups.tables import CoordinatorPhase
from state.groups.turn import Turn


def on_offsets_appended(slot: GroupSlot, event: Event, appended: OffsetsAppended) -> list[Decision]:
    """Take offsets that the topic has; a group that is gone by now is there again by that."""
    if slot.phase(appended.partition) is not CoordinatorPhase.OWNED:
        return []

    def act(turn: Turn, group: Group | None) -> Group:
        group = group or create(turn, appended.group, appended.partition)
        take_appended(turn, group, appended)
        return group

    return with_name(slot, event, appended.group, appended.partition, act)


def on_committed_topics_deleted(
    slot: GroupSlot, event: Event, deleted: CommittedTopicsDeleted
) -> list[Decision]:
    """Remove a group's offsets of topics that are gone."""
    if slot.phase(deleted.partition) is not CoordinatorPhase.OWNED:
        return []
    return with_group(
        slot,
        event,
        deleted.group,
        lambda turn, group: remove_topics(turn, group, deleted.topics),
    )


def on_offsets_expiration_due(
    slot: GroupSlot, event: Event, due: OffsetsExpirationDue
) -> list[Decision]:
    """Remove what has expired in a bucket."""
    bucket = slot.bucket(bucket_of_key(event.key))
    retention_ms = slot.config.offsets_retention_ms
    names = sorted(
        name
        for name, entry in bucket.entries.items()
        if entry.deadline_ms <= event.time_ms or entry.may_expire(event.time_ms, retention_ms)
    )
    return with_groups(slot, event, names, expire)


def on_transaction_completed(
    slot: GroupSlot, event: Event, done: TransactionCompleted
) -> list[Decision]:
    """End a producer's transaction in all groups of the partitions that got its marker."""
    found: list[Decision] = []
    for number in sorted(slot.transactional | slot.opened.keys()):
        bucket = slot.bucket(number)
        names = [
            name
            for name in bucket.of_partitions(done.partitions)
            if bucket.entries[name].transactions
        ]
        found.extend(
            with_groups(
                slot, event, names, lambda turn, group: complete_transaction(turn, group, done)
            )
        )
    return found
