"""What administrators ask about a topic that is being read again: nothing is known of it then."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller

ID = "AAECAwQFBgcICQoLDA0ODw"
NEW = {"topic_id": "AAAAAAAAAAAAAAAAAAAAAg", "partitions": 1, "replication_factor": 1}
REQUESTS: dict[str, dict[str, Any]] = {
    "create_topic_requested": {**NEW, "start_index": 0, "shift": 0},
    "create_partitions_requested": {"partitions": 2},
    "delete_topic_requested": {},
    "elect_leaders_requested": {"election_type": "preferred", "partitions": [0]},
    "alter_reassignments_requested": {"partitions": [0], "targets": [[3, 2]]},
}
KNOWN: dict[str, tuple[int, list[int]]] = {
    "create_topic_requested": (ProtocolError.TOPIC_ALREADY_EXISTS, []),
    "create_partitions_requested": (ProtocolError.NONE, []),
    "delete_topic_requested": (ProtocolError.NONE, []),
    "elect_leaders_requested": (ProtocolError.NONE, [ProtocolError.ELECTION_NOT_NEEDED]),
    "alter_reassignments_requested": (ProtocolError.NONE, [ProtocolError.NONE]),
}
"""What they get when the topic is known again: the error of the reply, and of each partition."""
AGAIN = ProtocolError.NOT_CONTROLLER


def read_again(*names: str) -> Controller:
    """A cluster whose topics are being read again."""
    controller = Controller()
    for name in names or ("t",):
        controller.topic(name, [[1, 2]], topic_id=ID)
        controller.take_back(name)
    return controller


def ask(controller: Controller, kind: str, topic: str = "t", **more: Any) -> Any:
    body = {"request_id": "r", "topic": topic, **REQUESTS[kind], **more}
    return controller.happen(kind, topic, **body)


def answered(said: dict[DecisionKind, Any]) -> int:
    """The error of the reply, and that nothing else was decided."""
    assert list(said) == [DecisionKind.REPLY]
    error: int = said[DecisionKind.REPLY]["error"]
    return error


@pytest.mark.parametrize("kind", REQUESTS)
def test_who_asks_about_a_topic_that_is_read_again_is_asked_to_ask_again(kind: str) -> None:
    controller = read_again()
    assert answered(ask(controller, kind)) == AGAIN
    controller.topic("t", [[1, 2]], [stored(1, [1, 2])], topic_id=ID, observed_again=True)
    reply = ask(controller, kind)[DecisionKind.REPLY]
    of_partitions = [one["error"] for one in reply.get("partitions") or ()]
    assert (reply["error"], of_partitions) == KNOWN[kind]


@pytest.mark.parametrize("topic_id", [ID, "AAAAAAAAAAAAAAAAAAAAAg"])
def test_a_deletion_by_id_waits_for_the_topic_too(topic_id: str) -> None:
    assert answered(ask(read_again(), "delete_topic_requested", topic_id=topic_id)) == AGAIN


@pytest.mark.parametrize("kind", ["create_topic_requested", "create_partitions_requested"])
def test_a_dry_run_is_answered_no_other_way(kind: str) -> None:
    assert answered(ask(read_again(), kind, validate_only=True)) == AGAIN


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_mark_for_deletion_makes_no_difference(kind: str) -> None:
    controller = read_again()
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert answered(ask(controller, kind)) == AGAIN


def test_a_name_that_turns_out_to_be_free_can_be_taken() -> None:
    controller = read_again()
    controller.happen("topic_removed", "t", topic="t")
    said = ask(controller, "create_topic_requested")
    assert said[DecisionKind.REPLY]["error"] == ProtocolError.NONE
    assert DecisionKind.CREATE_TOPIC in said


def test_names_that_would_share_a_metric_with_one_that_is_read_again_wait() -> None:
    controller = read_again("a.b")
    assert answered(ask(controller, "create_topic_requested", "a_b")) == AGAIN
    assert ask(controller, "create_topic_requested", "a_c")[DecisionKind.REPLY]["error"] == 0


@pytest.mark.parametrize("kind", ["elect_leaders_requested", "alter_reassignments_requested"])
def test_nobody_is_answered_about_what_stands_in_zookeeper(kind: str) -> None:
    assert ask(read_again(), kind, request_id=None) == {}
