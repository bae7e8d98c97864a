"""CreateTopics: placement, manual assignment, and each error."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind
from state.limits import REPLICAS_MAX
from state.protocol_errors import ProtocolError
from state.routing import topic_scope
from tests.unit.state.support import Controller

CREATE, REPLY = DecisionKind.CREATE_TOPIC, DecisionKind.REPLY


def create(controller: Controller, topic: str, **more: Any) -> dict[DecisionKind, Any]:
    asked = {
        "request_id": "r",
        "partitions": 3,
        "replication_factor": 2,
        "start_index": 1,
        "shift": 0,
    }
    return controller.happen("create_topic_requested", topic, **(asked | {"topic": topic} | more))


def error(said: dict[DecisionKind, Any]) -> str:
    return ProtocolError(said[REPLY]["error"]).name


def test_a_topic_is_written_and_its_partitions_are_online_in_one_event() -> None:
    controller = Controller()
    said = create(controller, "t", configs={"unclean.leader.election.enable": "true"})
    assert said[CREATE]["assignment"] == {"0": [2, 3], "1": [3, 1], "2": [1, 2]}
    assert [row["leader"] for row in said[DecisionKind.CHANGE_PARTITIONS]] == [2, 3, 1]
    assert (error(said), said[REPLY]["partitions"]) == ("NONE", 3)
    assert controller.slot.table.topics[0].unclean is True


def test_only_asking_changes_nothing() -> None:
    controller = Controller()
    said = create(controller, "t", validate_only=True)
    assert (list(said), error(said)) == ([REPLY], "NONE")
    assert not controller.slot.table.topics


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    said = create(Controller(), "t", assignment={"0": [3, 1], "1": [1, 2]})
    assert said[CREATE]["assignment"] == {"0": [3, 1], "1": [1, 2]}


def test_a_manual_assignment_may_name_brokers_that_are_down() -> None:
    said = create(Controller(), "t", assignment={"0": [9, 3], "1": [9, 8]})
    assert said[CREATE]["assignment"] == {"0": [9, 3], "1": [9, 8]}
    [row] = said[DecisionKind.CHANGE_PARTITIONS]
    assert (row["partition"], row["leader"], row["isr"]) == (0, 3, [3])


@pytest.mark.parametrize(
    "assignment",
    [
        {},
        {"1": [1]},
        {"0": []},
        {"0": [1], "1": [1, 2]},
        {"0": [1, 1]},
        {"0": [1, -3]},
        {"0": [1, 1000]},
        {"0": list(range(1_001, 1_002 + REPLICAS_MAX))},
    ],
)
def test_a_manual_assignment_that_cannot_be(assignment: dict[str, list[int]]) -> None:
    said = create(Controller(), "t", assignment=assignment)
    assert (list(said), error(said)) == ([REPLY], "INVALID_REPLICA_ASSIGNMENT")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"partitions": 0}, "INVALID_PARTITIONS"),
        ({"replication_factor": 4}, "INVALID_REPLICATION_FACTOR"),
        ({"replication_factor": 0}, "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_numbers_that_cannot_be(wrong: dict[str, int], name: str) -> None:
    assert error(create(Controller(), "t", **wrong)) == name


@pytest.mark.parametrize("name", [".", "..", "a b", "a/b", "x" * 250])
def test_illegal_names(name: str) -> None:
    assert error(create(Controller(), name)) == "INVALID_TOPIC_EXCEPTION"


def test_names_that_would_share_a_metric_are_in_one_slot_and_collide() -> None:
    controller = Controller()
    create(controller, "a.b")
    assert error(create(controller, "a.b")) == "TOPIC_ALREADY_EXISTS"
    assert error(create(controller, "a_b")) == "INVALID_TOPIC_EXCEPTION"
    assert topic_scope("a.b") == topic_scope("a_b") != topic_scope("a-b")


def test_a_topic_can_be_created_while_a_broker_that_it_needs_shuts_down() -> None:
    controller = Controller()
    controller.shut_down(2)
    said = create(controller, "t", replication_factor=3)
    assert error(said) == "NONE"
    assert said[CREATE]["assignment"]["0"] == [2, 3, 1]
    row = said[DecisionKind.CHANGE_PARTITIONS][0]
    assert (row["leader"], row["isr"]) == (3, [3, 1])


def test_without_the_role_nothing_is_created() -> None:
    controller = Controller()
    controller.happen("controller_resigned", reason="test")
    assert error(create(controller, "t")) == "NOT_CONTROLLER"
