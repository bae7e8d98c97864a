"""Elections by request: who is elected, and the error of each partition that is not."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind, Rule
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller


def elect(controller: Controller, kind: str, partitions: list[int], **more: Any) -> Any:
    body = {"request_id": "r", "topic": "t", "election_type": kind, "partitions": partitions}
    return controller.happen("elect_leaders_requested", "t", **(body | more))


def errors(said: Any) -> dict[int, int]:
    return {one["partition"]: one["error"] for one in said[DecisionKind.REPLY]["partitions"]}


def state(leader: int, isr: list[int]) -> list[Any]:
    return stored(leader, isr, leader_epoch=3, controller_epoch=4, zk_version=7)


def test_preferred_elections_answer_partition_by_partition() -> None:
    controller = Controller()
    states = [state(2, [2, 1]), state(1, [1, 2]), state(2, [2]), None]
    controller.topic("t", [[1, 2], [1, 2], [1, 2], [9]], states)
    said = elect(controller, "preferred", [0, 1, 2, 3, 4])
    assert errors(said) == {
        0: 0,
        1: ProtocolError.ELECTION_NOT_NEEDED,
        2: ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE,
        3: ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE,
        4: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    }
    [row] = said[DecisionKind.CHANGE_PARTITIONS]
    assert (row["partition"], row["leader"], row["leader_epoch"]) == (0, 1, 4)
    assert row["rule"] == Rule.PREFERRED_REPLICA_ELECTED


def test_a_preferred_replica_that_is_down_is_not_elected() -> None:
    controller = Controller()
    controller.topic("t", [[9, 2]], [state(2, [2, 9])])
    assert errors(elect(controller, "preferred", [0])) == {
        0: ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE
    }


def test_unclean_elections_need_no_configuration() -> None:
    controller = Controller()
    controller.topic("t", [[1, 9], [1, 2], [9]], [state(9, [9]), state(2, [2, 1]), state(9, [9])])
    said = elect(controller, "unclean", [0, 1, 2])
    assert errors(said) == {
        0: 0,
        1: ProtocolError.ELECTION_NOT_NEEDED,
        2: ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
    [row] = said[DecisionKind.CHANGE_PARTITIONS]
    assert (row["leader"], row["isr"], row["rule"]) == (1, [1], Rule.UNCLEAN_ELECTED)


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_a_partition_that_never_had_a_leader_is_no_trouble(kind: str) -> None:
    controller = Controller()
    controller.topic("t", [[9]])
    assert errors(elect(controller, kind, [0]))[0] in {
        ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE,
        ProtocolError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
    assert elect(controller, kind, [0], request_id=None)[DecisionKind.REFUSE_TRANSITION]


def test_nobody_waits_for_an_answer_to_the_znode() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], [state(2, [2, 1])])
    assert list(elect(controller, "preferred", [0], request_id=None)) == [
        DecisionKind.CHANGE_PARTITIONS
    ]


def test_who_is_not_the_controller_elects_nobody() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], [state(2, [2, 1])])
    controller.happen("controller_resigned", reason="test")
    [reply] = elect(controller, "preferred", [0]).values()
    assert (reply["error"], reply["partitions"]) == (ProtocolError.NOT_CONTROLLER, [])


def test_an_unknown_topic_is_answered() -> None:
    assert errors(elect(Controller(), "preferred", [0, -5])) == {
        0: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        -5: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_the_znode_of_a_request_goes_when_all_of_it_was_decided() -> None:
    controller = Controller()
    path = "/admin/preferred_replica_election"
    said = controller.happen("admin_znode_observed", path=path, zk_version=2)
    [deleted] = said.values()
    assert deleted == {"path": path, "expected_version": 2, "epoch_zk_version": 5}
    controller.happen("controller_resigned", reason="test")
    assert controller.happen("admin_znode_observed", path=path, zk_version=2) == {}


def test_no_other_znode_is_deleted() -> None:
    said = Controller().happen("admin_znode_observed", path="/brokers", zk_version=2)
    assert list(said) == [DecisionKind.SET_ASIDE]


def test_nothing_is_elected_for_a_topic_in_deletion() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], [state(2, [2, 1])])
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = elect(controller, "preferred", [0, 1])
    assert errors(said) == {
        0: ProtocolError.INVALID_TOPIC_EXCEPTION,
        1: ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    }
