"""Leaders that are shutting down while nobody else in sync can lead: they go on, and hear what
changes.
"""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind, Rule
from state.partitions.legal import PartitionState, ReplicaState
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, Said

CHANGE = DecisionKind.CHANGE_PARTITIONS
STOP = DecisionKind.STOP_REPLICAS


@pytest.fixture
def controller() -> Controller:
    """Topic t on 1 and 2, and another broker."""
    controller = Controller()
    controller.topic("t", [[1, 2]])
    return controller


def remaining(said: dict[DecisionKind, Any]) -> list[tuple[str, int]]:
    rows = said.get(DecisionKind.REPORT_REMAINING, [])
    return [(row["topic"], row["partition"]) for row in rows]


def conflict(controller: Controller, state: list[Any]) -> dict[DecisionKind, Any]:
    body = {"topic": "t", "cause": "conflict", "partitions": [0], "states": [state]}
    return controller.happen("partition_states_observed", "t", **body)


def led(row: Said) -> tuple[int, list[int], int, list[int]]:
    return row["leader"], row["isr"], row["leader_epoch"], row["recipients"]


@pytest.mark.parametrize("unclean", [False, True])
def test_a_leader_whose_isr_change_met_its_shutdown_goes_on_and_hears_the_bump(
    controller: Controller, unclean: bool
) -> None:
    """Also where an unclean election is allowed: the leader that is in sync is still there."""
    overrides = {"unclean": unclean, "min_insync_replicas": None}
    controller.happen("topic_config_changed", "t", topic="t", **overrides)
    assert remaining(controller.shut_down(1)) == []
    said = conflict(controller, stored(1, [1], zk_version=1))
    assert [led(row) for row in said[CHANGE]] == [(1, [1], 1, [1, 2])]
    assert STOP not in said
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE
    assert remaining(controller.shut_down(1)) == [("t", 0)]


def test_a_leader_that_another_one_follows_hears_of_it(controller: Controller) -> None:
    controller.alter([1])
    controller.shut_down(1)
    [row] = conflict(controller, stored(1, [1, 2], zk_version=2))[CHANGE]
    assert led(row) == (2, [2], 1, [1, 2])
    assert row["rule"] == Rule.CONTROLLED_SHUTDOWN_ELECTED


def test_a_leader_that_was_taken_for_a_follower_starts_again(controller: Controller) -> None:
    """Its second request came before the conflict of the first was known."""
    controller.shut_down(1)
    controller.shut_down(1)
    [row] = conflict(controller, stored(1, [1], zk_version=1))[CHANGE]
    assert led(row) == (1, [1], 1, [1, 2])
    assert controller.slot.table.rows.replica_state[0, 0] == ReplicaState.ONLINE


def test_the_first_brokers_that_ask_hear_the_bump_that_refuses_them(
    controller: Controller,
) -> None:
    """A leader that is shutting down is not live: no ISR with it is accepted, as in Kafka."""
    controller.alter([1])
    assert remaining(controller.shut_down(1)) == [("t", 0)]
    [row] = controller.alter([1, 2], version=0)[CHANGE]
    assert led(row) == (1, [1], 1, [1, 2])


def test_epochs_that_are_raised_are_told_to_a_leader_that_is_shutting_down(
    controller: Controller,
) -> None:
    controller.alter([1])
    controller.shut_down(1)
    [row] = controller.happen("raise_leader_epochs_requested", "t", request_id="r", topic="t")[
        CHANGE
    ]
    assert led(row) == (1, [1], 2, [1, 2])


def read_again(controller: Controller, state: list[Any]) -> dict[DecisionKind, Any]:
    controller.take_back()
    return controller.topic("t", [[1, 2]], [state], zk_version=1, observed_again=True)


def test_a_topic_read_again_leaves_the_only_leader_in_sync(controller: Controller) -> None:
    controller.alter([1])
    controller.shut_down(1)
    said = read_again(controller, stored(1, [1], zk_version=1))
    assert [led(row) for row in said[CHANGE]] == [(1, [1], 1, [1, 2])]
    assert STOP not in said
    assert remaining(controller.shut_down(1)) == [("t", 0)]


def test_a_topic_read_again_gets_the_leader_that_can_follow(controller: Controller) -> None:
    controller.alter([1])
    controller.shut_down(1)
    said = read_again(controller, stored(1, [1, 2], zk_version=2))
    assert [led(row) for row in said[CHANGE]] == [(2, [2], 1, [1, 2])]
    assert STOP not in said
