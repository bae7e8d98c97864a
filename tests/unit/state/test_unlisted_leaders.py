"""Leaders that their topic does not list: a move was taken back while they alone were in sync."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind
from state.partitions.legal import PartitionState
from tests.unit.state.support import Controller, broker

CHANGE, REFUSE = DecisionKind.CHANGE_PARTITIONS, DecisionKind.REFUSE_TRANSITION
COMPLETE, STOP = DecisionKind.COMPLETE_REASSIGNMENT, DecisionKind.STOP_REPLICAS


def led_by_3(controller: Controller) -> None:
    """Topic t on brokers 1 and 2, of which none is in sync."""
    controller.topic("t", [[1, 2]], [[3, 4, [3], 5, 0, 7]])


def move(controller: Controller, target: list[int], **more: Any) -> dict[DecisionKind, Any]:
    body = {"request_id": "r", "topic": "t", "partitions": [0], "targets": [target]}
    return controller.happen("alter_reassignments_requested", "t", **body | more)


def test_a_leader_that_is_listed_again_is_started_whenever_it_comes_back() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    said = move(controller, [1, 2, 3])
    assert REFUSE not in said
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    assert (row["adding"], sorted(row["recipients"])) == ([3], [1, 2, 3])
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE
    [row] = controller.brokers(unregistered=[3])[CHANGE]
    assert (row["leader"], row["isr"]) == (-1, [3])
    [row] = controller.brokers(registered=[broker(3, 203)])[CHANGE]
    assert (row["leader"], row["isr"]) == (3, [3])
    assert 3 in row["recipients"]


def test_a_leader_that_is_listed_again_while_it_is_down_leads_when_it_comes_back() -> None:
    controller = Controller((1, 2))
    led_by_3(controller)
    said = move(controller, [1, 2, 3], request_id=None)
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], REFUSE in said) == (3, [3], False)
    [row] = controller.brokers(registered=[broker(3, 103)])[CHANGE]
    assert (row["leader"], row["isr"]) == (3, [3])
    assert 3 in row["recipients"]
    assert controller.row("t", 0)["state"] == PartitionState.ONLINE


def test_a_move_to_a_leader_that_was_not_listed_ends_at_once() -> None:
    controller = Controller((1, 2, 3))
    led_by_3(controller)
    said = move(controller, [3])
    assert REFUSE not in said
    assert said[COMPLETE]["assignment"] == {"0": [3]}
    assert sorted((row["broker"], row["delete"]) for row in said[STOP]) == [(1, True), (2, True)]
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (3, [3], 5)
    controller.brokers(unregistered=[3])
    [row] = controller.brokers(registered=[broker(3, 203)])[CHANGE]
    assert (row["leader"], row["recipients"]) == (3, [3])
