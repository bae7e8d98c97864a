"""Legal moves of partitions and replicas, as data.

Source: the valid previous states of Kafka 3.9's PartitionStateMachine.scala and
ReplicaStateMachine.scala. A move that is not in the table is refused and reported, never applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from state.matrix import Bools


class PartitionState(IntEnum):
    """Life of a partition."""

    NON_EXISTENT = 0
    NEW = 1
    ONLINE = 2
    OFFLINE = 3


class ReplicaState(IntEnum):
    """Life of a replica."""

    NON_EXISTENT = 0
    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6


_P = PartitionState
_R = ReplicaState

LEGAL_PREVIOUS_PARTITION_STATES: Mapping[PartitionState, frozenset[PartitionState]] = {
    _P.NEW: frozenset({_P.NON_EXISTENT}),
    _P.ONLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.OFFLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.NON_EXISTENT: frozenset({_P.OFFLINE}),
}

LEGAL_PREVIOUS_REPLICA_STATES: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _R.NEW: frozenset({_R.NON_EXISTENT}),
    _R.ONLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
    _R.OFFLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
    _R.DELETION_STARTED: frozenset({_R.OFFLINE}),
    _R.DELETION_SUCCESSFUL: frozenset({_R.DELETION_STARTED}),
    _R.DELETION_INELIGIBLE: frozenset({_R.OFFLINE, _R.DELETION_STARTED}),
    _R.NON_EXISTENT: frozenset({_R.DELETION_SUCCESSFUL}),
}

S = TypeVar("S", PartitionState, ReplicaState)


def _matrix(table: Mapping[S, frozenset[S]]) -> Bools:
    legal = np.zeros((len(table), len(table)), dtype=bool)
    for target, previous in table.items():
        legal[target, [int(state) for state in previous]] = True
    return legal


_LEGAL_PARTITION_MOVES = _matrix(LEGAL_PREVIOUS_PARTITION_STATES)
_LEGAL_REPLICA_MOVES = _matrix(LEGAL_PREVIOUS_REPLICA_STATES)


def legal_partition_moves(current: npt.NDArray[np.int8], target: PartitionState) -> Bools:
    """Return bool[n]: which rows may move from their current state int8[n] to the target."""
    legal: Bools = _LEGAL_PARTITION_MOVES[target][current]
    return legal


def legal_replica_moves(current: npt.NDArray[np.int8], target: ReplicaState) -> Bools:
    """Return a mask shaped like current: which replicas may move to the target."""
    legal: Bools = _LEGAL_REPLICA_MOVES[target][current]
    return legal
