"""The tables of legal moves, and the page that is drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

from docs.draw_state_machines import PAGE, render
from state.partitions.legal import (
    VALID_PREVIOUS_PARTITION_STATES,
    VALID_PREVIOUS_REPLICA_STATES,
    PartitionState,
    ReplicaState,
    legal_partition_moves,
    legal_replica_moves,
)


def test_the_page_is_current() -> None:
    """Otherwise: python -m docs.draw_state_machines."""
    assert PAGE.read_text("utf-8") == render()


@pytest.mark.parametrize("target", PartitionState)
def test_partition_moves_are_those_of_the_table(target: PartitionState) -> None:
    current = np.array(list(PartitionState), dtype=np.int8)
    allowed = current[legal_partition_moves(current, target)].tolist()
    assert set(allowed) == VALID_PREVIOUS_PARTITION_STATES[target]


@pytest.mark.parametrize("target", ReplicaState)
def test_replica_moves_are_those_of_the_table(target: ReplicaState) -> None:
    current = np.array([list(ReplicaState)], dtype=np.int8)
    allowed = current[legal_replica_moves(current, target)].tolist()
    assert set(allowed) == VALID_PREVIOUS_REPLICA_STATES[target]
