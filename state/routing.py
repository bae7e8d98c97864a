"""Which machines fold an event.

Every record of the event log gets a scope: ALL (every machine), CLUSTER (the cluster machine
alone), or a non-negative hash of its topic. A slot is `scope % slots`. Topics whose names differ
only in '.' and '_' share a scope, because Kafka forbids both to exist (their metric names would
collide): the check stays local to a slot.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from state.events import EventKind

ALL = -2
CLUSTER = -1

CLUSTER_KEY = -1
"""State key of the cluster machine; slots are 0, 1, ..."""

_SCOPES: Mapping[str, int] = {
    EventKind.CONTROLLER_ELECTED: ALL,
    EventKind.CONTROLLER_RESIGNED: ALL,
    EventKind.BROKER_REGISTRATIONS_CHANGED: ALL,
    EventKind.RESYNC_COMPLETED: ALL,
    EventKind.CLUSTER_CONFIG_CHANGED: ALL,
    EventKind.CONTROLLED_SHUTDOWN_REQUESTED: ALL,
    EventKind.LOG_DIR_FAILURE_NOTIFIED: ALL,
    EventKind.TIMER_DUE: ALL,
    EventKind.LEADER_IMBALANCE_REPORTED: ALL,
    EventKind.PRODUCER_IDS_REQUESTED: CLUSTER,
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: CLUSTER,
    EventKind.ADMIN_ZNODE_OBSERVED: CLUSTER,
}


def topic_scope(topic: str) -> int:
    """Return the hash that places a topic: crc32 of its name with '.' read as '_', 0 to 2**32 -
    1.
    """
    return zlib.crc32(topic.replace(".", "_").encode())


def scope(kind: str, key: str) -> int:
    """Return the scope of an event: ALL, CLUSTER or a topic hash.

    A kind that is not listed is about the topic in its key; one that names no topic (a topic id
    nobody knows, a record that nobody can read) is the cluster machine's to answer or to set aside.
    """
    listed = _SCOPES.get(kind)
    if listed is not None:
        return listed
    return topic_scope(key) if key else CLUSTER


def machine_keys(event_scope: int, slots: int) -> tuple[int, ...]:
    """Return the state keys that fold an event of this scope, ascending."""
    if event_scope == ALL:
        return (CLUSTER_KEY, *range(slots))
    if event_scope == CLUSTER:
        return (CLUSTER_KEY,)
    return (event_scope % slots,)
