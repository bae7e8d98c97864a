"""Which machines fold an event.

Every record of the event log gets a scope: CLUSTER_AND_SLOTS (the cluster machine and every slot),
CLUSTER (the cluster machine alone), a non-negative hash of its topic, ALL_GROUPS (every group
slot), or GROUP_SCOPE plus the bucket of its group. A slot is `scope % slots`, a group slot is
`bucket % group_slots` (`Layout`). Topics whose names differ only in '.' and '_' share a scope,
because Kafka forbids both to exist (their metric names would collide): the check stays local to a
slot.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from state.event_kinds import EventKind
from state.groups.buckets import bucket_of_key, group_bucket
from state.groups.kinds import OF_A_BUCKET, OF_A_GROUP, OF_ALL_GROUPS

ALL_GROUPS = -3
CLUSTER_AND_SLOTS = -2
CLUSTER = -1
GROUP_SCOPE = 1 << 40
"""Scope of bucket 0; hashes of topics are below."""

CLUSTER_KEY = -1
"""State key of the cluster machine; slots are 0, 1, ..."""

GROUP_KEY = 1 << 20
"""State key of the first group slot."""

GROUP_SLOTS = 16
"""Group slots unless `group.slots` says otherwise."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Over how many slots topics are spread, and over how many group slots groups."""

    slots: int
    group_slots: int


_SCOPES: Mapping[str, int] = {
    EventKind.CONTROLLER_ELECTED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLER_RESIGNED: CLUSTER_AND_SLOTS,
    EventKind.BROKER_REGISTRATIONS_CHANGED: CLUSTER_AND_SLOTS,
    EventKind.RESYNC_COMPLETED: CLUSTER_AND_SLOTS,
    EventKind.CLUSTER_CONFIG_CHANGED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLED_SHUTDOWN_REQUESTED: CLUSTER_AND_SLOTS,
    EventKind.LOG_DIR_FAILURE_NOTIFIED: CLUSTER_AND_SLOTS,
    EventKind.TIMER_DUE: CLUSTER_AND_SLOTS,
    EventKind.LEADER_IMBALANCE_REPORTED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLER_PAUSED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLER_RESUMED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLED_SHUTDOWN_ALLOWED: CLUSTER_AND_SLOTS,
    EventKind.CONTROLLED_SHUTDOWN_CHECKED: CLUSTER_AND_SLOTS,
    EventKind.PRODUCER_IDS_REQUESTED: CLUSTER,
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: CLUSTER,
    EventKind.ADMIN_ZNODE_OBSERVED: CLUSTER,
    EventKind.DELEGATION_TOKENS_EXPIRED: CLUSTER,
    **dict.fromkeys(OF_ALL_GROUPS, ALL_GROUPS),
}


def topic_scope(topic: str) -> int:
    """Return the hash that places a topic: crc32 of its name with '.' read as '_', 0 to 2**32 -
    1.
    """
    return zlib.crc32(topic.replace(".", "_").encode())


def scope(kind: str, key: str) -> int:
    """Return the scope of an event: one of the constants, a topic hash or a group's bucket.

    A kind that is not listed is about the topic in its key; one that names no topic (a topic id
    nobody knows, a record that nobody can read) is the cluster machine's to answer or to set aside.
    """
    listed = _SCOPES.get(kind)
    if listed is not None:
        return listed
    if kind in OF_A_GROUP:
        return GROUP_SCOPE + group_bucket(key)
    if kind in OF_A_BUCKET:
        return _bucket_scope(key)
    return topic_scope(key) if key else CLUSTER


def _bucket_scope(key: str) -> int:
    """Return the scope of an event about a bucket; one that names none goes to the first."""
    try:
        return GROUP_SCOPE + bucket_of_key(key)
    except ValueError:
        return GROUP_SCOPE


def machine_keys(event_scope: int, layout: Layout) -> tuple[int, ...]:
    """Return the state keys that fold an event of this scope, ascending.

    `streaming.router.machine_keys_column` is the same for a column of scopes;
    `tests/spark/test_query.py` compares the two.
    """
    if event_scope == CLUSTER_AND_SLOTS:
        return (CLUSTER_KEY, *range(layout.slots))
    if event_scope == CLUSTER:
        return (CLUSTER_KEY,)
    if event_scope == ALL_GROUPS:
        return tuple(range(GROUP_KEY, GROUP_KEY + layout.group_slots))
    if event_scope >= GROUP_SCOPE:
        return (GROUP_KEY + (event_scope - GROUP_SCOPE) % layout.group_slots,)
    return (event_scope % layout.slots,)


def narrowed(event_scope: int, layout: Layout) -> int:
    """Return the scope that stands for all those of the same machines (`machine_keys`)."""
    if event_scope < 0:
        return event_scope
    if event_scope >= GROUP_SCOPE:
        return GROUP_SCOPE + (event_scope - GROUP_SCOPE) % layout.group_slots
    return event_scope % layout.slots


def is_group_key(key: int) -> bool:
    """Return whether a state key is a group slot's."""
    return key >= GROUP_KEY
