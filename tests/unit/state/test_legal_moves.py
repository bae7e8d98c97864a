"""The tables of legal moves, and the page that is drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

from docs.draw_state_machines import PAGE, render
from state.partitions.legal import (
    PartitionState,
    ReplicaState,
    legal_partition_moves,
    legal_replica_moves,
)

# From which states each may be entered: validPreviousStates in Kafka 3.9's
# PartitionStateMachine.scala and ReplicaStateMachine.scala.
PARTITIONS = {
    "NEW": "NON_EXISTENT",
    "ONLINE": "NEW ONLINE OFFLINE",
    "OFFLINE": "NEW ONLINE OFFLINE",
    "NON_EXISTENT": "OFFLINE",
}
REPLICAS = {
    "NEW": "NON_EXISTENT",
    "ONLINE": "NEW ONLINE OFFLINE DELETION_INELIGIBLE",
    "OFFLINE": "NEW ONLINE OFFLINE DELETION_INELIGIBLE",
    "DELETION_STARTED": "OFFLINE",
    "DELETION_SUCCESSFUL": "DELETION_STARTED",
    "DELETION_INELIGIBLE": "OFFLINE DELETION_STARTED",
    "NON_EXISTENT": "DELETION_SUCCESSFUL",
}


def test_the_page_is_current() -> None:
    """Otherwise: python -m docs.draw_state_machines."""
    assert PAGE.read_text("utf-8") == render()


@pytest.mark.parametrize("target", PartitionState)
def test_partition_moves_are_those_of_the_table(target: PartitionState) -> None:
    current = np.array(list(PartitionState), dtype=np.int8)
    allowed = current[legal_partition_moves(current, target)].tolist()
    assert {PartitionState(one).name for one in allowed} == {*PARTITIONS[target.name].split()}


@pytest.mark.parametrize("target", ReplicaState)
def test_replica_moves_are_those_of_the_table(target: ReplicaState) -> None:
    current = np.array([list(ReplicaState)], dtype=np.int8)
    allowed = current[legal_replica_moves(current, target)].tolist()
    assert {ReplicaState(one).name for one in allowed} == {*REPLICAS[target.name].split()}
