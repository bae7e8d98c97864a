"""The rows of topics that are created or observed, as columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from state.matrix import NONE, Bools, Int32s, contains, widen
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.table import COLUMN_NAMES, NO_LEADER, NO_VERSION, Columns
from state.payloads.topics import TopicObserved


def new_columns(topic: int | Int32s, partition: Int32s, replicas: Int32s) -> Columns:
    """Return rows of partitions that have no state yet; topic: of all of them, or of each."""
    count = len(partition)
    return Columns(
        topic=np.full(count, topic, dtype=np.int32),
        partition=partition,
        replicas=replicas,
        isr=np.full((count, 1), NONE, dtype=np.int32),
        leader=np.full(count, NO_LEADER, dtype=np.int32),
        leader_epoch=np.full(count, -1, dtype=np.int32),
        zk_version=np.full(count, NO_VERSION, dtype=np.int32),
        controller_epoch=np.full(count, -1, dtype=np.int32),
        recovery=np.zeros(count, dtype=np.int8),
        state=np.full(count, PartitionState.NON_EXISTENT, dtype=np.int8),
        replica_state=np.full(replicas.shape, ReplicaState.NON_EXISTENT, dtype=np.int8),
        offline_dir=np.zeros(replicas.shape, dtype=bool),
        adding=np.zeros(replicas.shape, dtype=bool),
        removing=np.zeros(replicas.shape, dtype=bool),
    )


def observed_columns(observed: TopicObserved, replicas: Int32s, topic: int) -> Columns:
    """Return the rows of an observed topic; replicas may differ from what was observed."""
    states = observed.states
    return replace(
        new_columns(topic, observed.partitions.copy(), replicas),
        isr=widen(states.isr, 1).copy(),
        leader=states.leader.copy(),
        leader_epoch=states.leader_epoch.copy(),
        zk_version=states.zk_version.copy(),
        controller_epoch=states.controller_epoch.copy(),
        recovery=states.recovery.astype(np.int8),
        adding=contains(observed.adding, replicas),
        removing=contains(observed.removing, replicas),
    )


def select(columns: Columns, mask: Bools) -> Columns:
    """Return the rows where mask bool[n] holds."""
    return Columns(**{name: getattr(columns, name)[mask] for name in COLUMN_NAMES})
