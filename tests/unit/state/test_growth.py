"""CreatePartitions: what is refused, where new partitions go, and that they start."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind
from state.partitions.growth import place_new_partitions
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions


def grow(controller: Controller, partitions: int, topic: str = "t", **more: Any) -> Any:
    return controller.happen(
        "create_partitions_requested",
        topic,
        request_id="r",
        topic=topic,
        partitions=partitions,
        **more,
    )


def three() -> Controller:
    controller = Controller()
    controller.topic("t", [[2, 3], [3, 1], [1, 2]], zk_version=4)
    return controller


def test_new_partitions_are_written_to_the_topic_and_started() -> None:
    controller = three()
    said = grow(controller, 5)
    rewritten = said[DecisionKind.REWRITE_ASSIGNMENT]
    assert rewritten["expected_version"] == 4
    assert rewritten["assignment"] == {
        "0": [2, 3],
        "1": [3, 1],
        "2": [1, 2],
        "3": [2, 3],
        "4": [3, 1],
    }
    assert (rewritten["adding"], rewritten["removing"]) == ({}, {})
    created = said[DecisionKind.CHANGE_PARTITIONS]
    assert [row["partition"] for row in created] == [3, 4]
    assert all(actions(row) & Action.CREATE for row in created)
    assert [row["leader"] for row in created] == [2, 3]
    assert said[DecisionKind.REPLY]["error"] == 0
    assert controller.slot.table.topics[0].zk_version == 5


def test_a_second_growth_expects_the_version_the_first_one_leaves() -> None:
    controller = three()
    grow(controller, 4)
    assert grow(controller, 6)[DecisionKind.REWRITE_ASSIGNMENT]["expected_version"] == 5
    assert len(controller.slot.table.rows) == 6


def test_the_topic_seen_again_with_what_we_wrote_changes_nothing() -> None:
    controller = three()
    written = grow(controller, 4)[DecisionKind.REWRITE_ASSIGNMENT]["assignment"]
    lists = [written[str(number)] for number in range(4)]
    assert controller.topic("t", lists, zk_version=5) == {}


def test_an_assignment_is_taken_as_it_is() -> None:
    controller = three()
    said = grow(controller, 5, assignment=[[3, 2], [1, 3]])
    assert [row["replicas"] for row in said[DecisionKind.CHANGE_PARTITIONS]] == [[3, 2], [1, 3]]


def test_a_dry_run_only_answers() -> None:
    controller = three()
    assert list(grow(controller, 5, validate_only=True)) == [DecisionKind.REPLY]
    assert len(controller.slot.table.rows) == 3


@pytest.mark.parametrize(
    ("partitions", "more", "error"),
    [
        (2, {}, ProtocolError.INVALID_PARTITIONS),
        (3, {}, ProtocolError.INVALID_PARTITIONS),
        (-1, {}, ProtocolError.INVALID_PARTITIONS),
        (4, {"topic": "nobody"}, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION),
        (4, {"assignment": [[1, 9]]}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (4, {"assignment": [[1, 2], [2, 3]]}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (4, {"assignment": []}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (4, {"assignment": [[1, 1]]}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (4, {"assignment": [[1]]}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (4, {"assignment": [[]]}, ProtocolError.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_refused_changes_nothing(partitions: int, more: Any, error: int) -> None:
    controller = three()
    said = grow(controller, partitions, **more)
    assert list(said) == [DecisionKind.REPLY]
    assert said[DecisionKind.REPLY]["error"] == error
    assert said[DecisionKind.REPLY]["message"]


def test_a_topic_in_motion_does_not_grow() -> None:
    controller = Controller()
    states = [stored(2, [2, 3], controller_epoch=4)]
    controller.topic("t", [[1, 2, 3]], states, adding=[[1]], removing=[[3]])
    reply = grow(controller, 2)[DecisionKind.REPLY]
    assert reply["error"] == ProtocolError.REASSIGNMENT_IN_PROGRESS


def test_too_few_brokers_and_incomplete_racks_are_refused() -> None:
    controller = three()
    controller.brokers(unregistered=[2, 3])
    assert (
        grow(controller, 4)[DecisionKind.REPLY]["error"] == ProtocolError.INVALID_REPLICATION_FACTOR
    )
    controller.brokers(
        registered=[{"id": 2, "epoch": 400, "rack": "a", "endpoints": []}],
    )
    assert grow(controller, 4)[DecisionKind.REPLY]["error"] == ProtocolError.UNKNOWN_SERVER_ERROR


def test_nobody_grows_topics_without_being_the_controller() -> None:
    controller = three()
    controller.happen("controller_resigned", reason="test")
    assert grow(controller, 4)[DecisionKind.REPLY]["error"] == ProtocolError.NOT_CONTROLLER


def test_placement_starts_at_the_broker_that_follows_a_leader_who_left() -> None:
    racks = dict.fromkeys((1, 2, 4, 5))
    assert place_new_partitions(racks, 2, [3, 1], 2).tolist() == [[1, 5], [2, 1]]
    assert place_new_partitions(racks, 1, [9, 1], 0).tolist() == [[1, 2]]


def test_a_topic_in_deletion_does_not_grow() -> None:
    controller = three()
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert grow(controller, 4)[DecisionKind.REPLY]["error"] == ProtocolError.INVALID_TOPIC_EXCEPTION
