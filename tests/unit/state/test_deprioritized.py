"""Brokers of leader.deprioritized.list lead where nobody else can."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from state.cluster.config import broker_ids
from state.decisions import DecisionKind, Rule
from state.events import Event
from state.partitions.ballots import Finding
from state.protocol_errors import ProtocolError
from state.step import fold
from tests.fixtures.states import stored
from tests.unit.state.support import Controller
from tests.unit.state.test_admin_elections import elect, errors
from tests.unit.state.test_leader_rebalance import report

CHANGE, ARM = DecisionKind.CHANGE_PARTITIONS, DecisionKind.ARM_TIMER


def deprioritize(controller: Controller, listed: str) -> Any:
    return controller.happen("cluster_config_changed", config={"leader.deprioritized.list": listed})


def leaders(controller: Controller) -> list[int]:
    return controller.slot.table.rows.leader.tolist()


def rebalance(controller: Controller) -> Any:
    """Take what slots report until nothing moves any more."""
    moved: list[Any] = []
    while found := report(controller).get(CHANGE):
        moved += found
    return moved


@pytest.mark.parametrize("listed", ["", "  "])
def test_an_empty_list_names_nobody(listed: str) -> None:
    assert broker_ids(listed) == ()


def test_ids_are_read_with_blanks_and_once() -> None:
    assert broker_ids(" 7,5 , 7") == (5, 7)


@pytest.mark.parametrize("listed", ["a", "1,,2", "-1", "1.5", "2147483648", "1;2", "\u0661"])
def test_what_is_no_list_of_ids_is_refused(listed: str) -> None:
    with pytest.raises(ValueError, match="is no id of a broker"):
        broker_ids(listed)


def test_new_partitions_are_led_by_others() -> None:
    controller = Controller(leader_deprioritized_list="1")
    controller.topic("t", [[1, 2, 3], [1], [3, 1]])
    assert leaders(controller) == [2, 1, 3]


def test_leaders_leave_and_come_back_by_the_rebalance_which_begins_at_once() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2], [1, 3], [2, 1], [1]])
    before_ms = controller.cluster.timers["leader_rebalance"]
    assert deprioritize(controller, "1")[ARM]["deadline_ms"] < before_ms
    assert {row["rule"] for row in rebalance(controller)} == {Rule.PREFERRED_REPLICA_ELECTED}
    assert leaders(controller) == [2, 3, 2, 1]
    deprioritize(controller, "")
    rebalance(controller)
    assert leaders(controller) == [1, 1, 2, 1]


def test_without_an_automatic_rebalance_nothing_begins() -> None:
    controller = Controller(auto_leader_rebalance_enable=False)
    assert deprioritize(controller, "1") == {}


def test_who_leads_last_leads_while_the_others_are_away() -> None:
    controller = Controller(leader_deprioritized_list="1")
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[2])
    assert leaders(controller) == [3]
    controller.brokers(unregistered=[3])
    assert leaders(controller) == [1]


def test_another_one_takes_over_though_the_next_of_the_list_is_away() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    controller.brokers(unregistered=[2])
    deprioritize(controller, "1")
    rebalance(controller)
    assert leaders(controller) == [3]


def test_a_controlled_shutdown_passes_over_them() -> None:
    controller = Controller(leader_deprioritized_list="2")
    controller.topic("t", [[1, 2, 3]])
    controller.shut_down(1)
    assert leaders(controller) == [3]


def test_an_administrator_moves_leaders_the_same_way() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2, 3]])
    assert elected(controller) == ProtocolError.ELECTION_NOT_NEEDED
    deprioritize(controller, "1")
    assert elected(controller) == ProtocolError.NONE
    assert leaders(controller) == [2]
    assert elected(controller) == ProtocolError.ELECTION_NOT_NEEDED


def elected(controller: Controller) -> int:
    return errors(elect(controller, "preferred", [0]))[0]


def test_a_reassignment_gives_the_partition_to_another_one() -> None:
    controller = Controller((1, 2, 3, 4), leader_deprioritized_list="3")
    controller.topic("t", [[1, 2]])
    controller.move([3, 4])
    controller.alter([1, 2, 3, 4])
    assert leaders(controller) == [4]


def test_an_unclean_leader_is_another_one() -> None:
    controller = Controller(unclean_leader_election_enable=True, leader_deprioritized_list="2")
    controller.topic("t", [[1, 2, 3]], [stored(1, [1], controller_epoch=4)])
    controller.brokers(unregistered=[1])
    assert leaders(controller) == [3]


def test_it_is_told_why_one_was_passed_over() -> None:
    controller = Controller(leader_deprioritized_list="1")
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2, 3], controller_epoch=4)])
    slot = controller.slot
    slot.ballots = []
    body = {"request_id": "r", "topic": "t", "election_type": "preferred", "partitions": [0]}
    fold(slot, [Event(99, 0, "elect_leaders_requested", "t", orjson.dumps(body))])
    (ballot,) = slot.ballots
    assert ballot.candidates == (
        (1, Finding.DEPRIORITIZED),
        (2, Finding.ELECTED),
        (3, Finding.NOT_PREFERRED),
    )
