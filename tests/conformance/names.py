"""How scenarios write partitions, replicas, states and topic ids."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from state.partitions.legal import PartitionState, ReplicaState
from tests.conformance.verdict import NotUnderstoodError

PARTITION_STATES = {
    "NonExistent": PartitionState.NON_EXISTENT,
    "New": PartitionState.NEW,
    "Online": PartitionState.ONLINE,
    "Offline": PartitionState.OFFLINE,
}
REPLICA_STATES = {
    "NonExistentReplica": ReplicaState.NON_EXISTENT,
    "NewReplica": ReplicaState.NEW,
    "OnlineReplica": ReplicaState.ONLINE,
    "OfflineReplica": ReplicaState.OFFLINE,
    "ReplicaDeletionStarted": ReplicaState.DELETION_STARTED,
    "ReplicaDeletionSuccessful": ReplicaState.DELETION_SUCCESSFUL,
    "ReplicaDeletionIneligible": ReplicaState.DELETION_INELIGIBLE,
}


def partition_state(name: str) -> PartitionState:
    """Return a partition state by its name, with or without Kafka's suffix."""
    return _named(PARTITION_STATES, name.removesuffix("Partition"))


def replica_state(name: str) -> ReplicaState:
    """Return a replica state by its name."""
    return _named(REPLICA_STATES, name)


def _named(names: dict[str, Any], name: str) -> Any:
    if name not in names:
        raise NotUnderstoodError(f"state {name!r} is none of {sorted(names)}")
    return names[name]


def name_of(state: PartitionState | ReplicaState) -> str:
    """Return a state's name as scenarios write it."""
    names = PARTITION_STATES if isinstance(state, PartitionState) else REPLICA_STATES
    return next(name for name, value in names.items() if value == state)


def topic_partition(name: str) -> tuple[str, int]:
    """Split "topic-0"; topics may have dashes themselves."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def topic_id(label: str | None) -> str | None:
    """Return the topic id a label such as "T" stands for: any, but always the same."""
    if label is None:
        return None
    digest = hashlib.sha256(label.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
