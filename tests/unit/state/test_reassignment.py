"""Reassignments from the request to the end: what is written, told, stopped and answered."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.limits import REPLICAS_MAX
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

CHANGE = DecisionKind.CHANGE_PARTITIONS
REWRITE, COMPLETE = DecisionKind.REWRITE_ASSIGNMENT, DecisionKind.COMPLETE_REASSIGNMENT
REMOVE, STOP, REPLY = (
    DecisionKind.REMOVE_REASSIGNMENTS,
    DecisionKind.STOP_REPLICAS,
    DecisionKind.REPLY,
)


def state(leader: int, isr: list[int]) -> list[Any]:
    return stored(leader, isr, leader_epoch=3, controller_epoch=4, zk_version=7)


def with_topic(replicas: list[int] | None = None, isr: list[int] | None = None) -> Controller:
    controller = Controller((1, 2, 3, 4))
    replicas = replicas or [1, 2]
    controller.topic("t", [replicas], [state(replicas[0], isr or replicas)], zk_version=9)
    return controller


def motion(controller: Controller) -> tuple[list[int], list[int], list[int]]:
    slot = controller.slot
    rows, row = slot.table.rows, int(slot.table.rows_of("t")[0])
    replicas = rows.replicas[row]
    lists = (replicas[replicas >= 0], replicas[rows.adding[row]], replicas[rows.removing[row]])
    return lists[0].tolist(), lists[1].tolist(), lists[2].tolist()


def errors(said: Any) -> list[int]:
    return [one["error"] for one in said[REPLY]["partitions"]]


def test_a_motion_starts_with_the_topic_a_new_epoch_and_new_replicas() -> None:
    controller = with_topic()
    said = controller.move([3, 4])
    rewritten = said[REWRITE]
    assert rewritten["assignment"] == {"0": [3, 4, 1, 2]}
    assert (rewritten["adding"], rewritten["removing"]) == ({"0": [3, 4]}, {"0": [1, 2]})
    assert rewritten["expected_version"] == 9
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (1, 4, [1, 2])
    assert sorted(row["recipients"]) == [1, 2, 3, 4]
    assert actions(row) & Action.IS_NEW
    assert (row["adding"], row["removing"]) == ([3, 4], [1, 2])
    assert errors(said) == [0]
    assert said[REMOVE]["partitions"] == [[0, None]]
    assert STOP not in said


def test_a_reassignment_ends_when_all_of_the_target_are_in_sync() -> None:
    controller = with_topic()
    controller.move([3, 4])
    assert COMPLETE not in controller.alter([1, 2, 3])
    said = controller.alter([1, 2, 3, 4])
    assert said[COMPLETE]["assignment"] == {"0": [3, 4]}
    assert (said[COMPLETE]["adding"], said[COMPLETE]["removing"]) == ({}, {})
    assert said[COMPLETE]["expected_version"] == 10
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["replicas"]) == (3, [3, 4], [3, 4])
    assert (row["leader_epoch"], sorted(row["recipients"])) == (5, [3, 4])
    assert [(one["broker"], one["delete"], one["leader_epoch"]) for one in said[STOP]] == [
        (1, True, 5),
        (2, True, 5),
    ]
    assert said[REMOVE]["partitions"] == [[0, [3, 4]]]
    assert motion(controller) == ([3, 4], [], [])


def test_a_leader_that_stays_gets_a_new_epoch() -> None:
    controller = with_topic()
    controller.move([1, 3])
    [row] = controller.alter([1, 2, 3])[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (1, [1, 3], 5)


def test_another_order_is_taken_at_once() -> None:
    controller = with_topic()
    said = controller.move([2, 1], several=REMOVE)
    assert [one["partitions"] for one in said[REMOVE]] == [[[0, [2, 1]]], [[0, None]]]
    assert said[COMPLETE]["assignment"] == said[REWRITE]["assignment"] == {"0": [2, 1]}
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["rule"]) == (1, 4, Rule.LEADER_EPOCH_BUMPED)


def test_what_is_there_already_is_written_again_as_kafka_does() -> None:
    said = with_topic().move([1, 2], several=REMOVE)
    assert REWRITE not in said
    assert said[COMPLETE]["expected_version"] == 9
    [row] = said[CHANGE]
    assert row["leader_epoch"] == 4


def test_a_motion_is_taken_back() -> None:
    controller = with_topic()
    controller.move([3, 4])
    controller.alter([1, 2, 3])
    said = controller.move(None, several=REMOVE)
    assert said[REWRITE]["assignment"] == said[COMPLETE]["assignment"] == {"0": [1, 2]}
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(3, True), (4, True)]
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["replicas"]) == (1, [1, 2], [1, 2])
    assert motion(controller) == ([1, 2], [], [])
    assert errors(controller.move(None)) == [ProtocolError.NO_REASSIGNMENT_IN_PROGRESS]


def test_a_newer_plan_takes_the_place_of_an_older_one() -> None:
    controller = with_topic()
    controller.move([3, 2])
    said = controller.move([4, 2])
    assert motion(controller) == ([4, 2, 1], [4], [1])
    assert [one["broker"] for one in said[STOP]] == [3]
    [row] = said[CHANGE]
    assert sorted(row["recipients"]) == [1, 2, 4]


def test_a_newer_plan_that_has_no_use_for_the_leader_elects_another() -> None:
    controller = Controller((1, 2, 3, 4, 5))
    controller.topic("t", [[1, 2, 3]], [state(1, [1, 2, 3])])
    controller.move([4, 5])
    controller.alter([1, 2, 3, 4])
    body = {"request_id": "r", "topic": "t", "election_type": "preferred", "partitions": [0]}
    controller.happen("elect_leaders_requested", "t", **body)
    led = controller.row("t", 0)
    assert led["leader"] == 4
    said = controller.move([1, 2, 5])
    assert errors(said) == [0]
    assert motion(controller) == ([1, 2, 5, 3], [5], [3])
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"]) == (1, [1, 2, 3])
    assert (row["leader_epoch"], row["rule"]) == (
        led["leader_epoch"] + 1,
        Rule.OFFLINE_PARTITION_ELECTED,
    )
    assert sorted(row["recipients"]) == [1, 2, 3, 5]
    assert [(one["broker"], one["delete"]) for one in said[STOP]] == [(4, True)]


def test_leadership_is_not_given_away_for_a_list_without_a_replica_in_sync() -> None:
    controller = with_topic()
    controller.move([3, 4])
    controller.brokers(unregistered=[2])
    controller.alter([1, 3])
    controller.brokers(unregistered=[1])
    assert controller.row("t", 0)["leader"] == 3
    said = controller.move(None)
    assert errors(said) == [ProtocolError.INVALID_REPLICA_ASSIGNMENT]
    assert list(said) == [REPLY]


@pytest.mark.parametrize("target", [[3, 2], None])
def test_a_motion_is_not_taken_from_the_only_replica_in_sync(target: list[int] | None) -> None:
    controller = Controller((1, 2, 3, 4))
    controller.topic("t", [[1, 4, 3]], [state(1, [1])], adding=[[1]], removing=[[3]])
    controller.brokers(unregistered=[1])
    assert controller.row("t", 0)["leader"] == -1
    said = controller.move(target)
    assert errors(said) == [ProtocolError.INVALID_REPLICA_ASSIGNMENT]
    assert CHANGE not in said
    assert motion(controller) == ([1, 4, 3], [1], [3])


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ([], ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        ([-1, 2], ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1000], ProtocolError.INVALID_REPLICA_ASSIGNMENT),
        (None, ProtocolError.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_is_refused_changes_nothing(target: list[int] | None, error: int) -> None:
    said = with_topic().move(target)
    assert list(said) == [REPLY]
    assert errors(said) == [error]


@pytest.mark.parametrize("request_id", ["r", None])
def test_replicas_that_come_and_go_are_counted_together(request_id: str | None) -> None:
    """Those of a request in ZooKeeper need not live."""
    said = with_topic([1, 2]).move(list(range(2_000, 1_999 + REPLICAS_MAX)), request_id=request_id)
    assert REWRITE not in said
    if request_id is None:
        assert said[REMOVE]["partitions"] == [[0, None]]
    else:
        assert errors(said) == [ProtocolError.INVALID_REPLICA_ASSIGNMENT]


def test_each_partition_has_its_own_answer() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1], [1]], [state(1, [1])] * 2)
    said = controller.move([2], [9], [2], partitions=[0, 1, 5])
    assert errors(said) == [
        ProtocolError.NONE,
        ProtocolError.INVALID_REPLICA_ASSIGNMENT,
        ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [row["partition"] for row in said[CHANGE]] == [0]


def test_a_partition_that_never_had_a_leader_goes_at_once() -> None:
    controller = Controller((1, 2))
    controller.topic("t", [[9]])
    said = controller.move([2, 1], several=REMOVE)
    assert said[COMPLETE]["assignment"] == {"0": [2, 1]}
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"]) == (2, [2, 1])
    assert actions(row) & Action.CREATE


def test_one_that_cannot_start_there_either_waits_with_its_new_list() -> None:
    controller = Controller((1,))
    controller.topic("t", [[9]])
    said = controller.move([8, 7], request_id=None)
    assert said[COMPLETE]["assignment"] == {"0": [8, 7]}
    assert CHANGE not in said
    [row] = controller.brokers(registered=[broker(7, 107)])[CHANGE]
    assert (row["leader"], row["isr"]) == (7, [7])


def test_a_target_that_comes_back_is_told_again() -> None:
    controller = with_topic()
    controller.move([1, 3])
    controller.brokers(unregistered=[3])
    epoch = controller.row("t", 0)["leader_epoch"]
    [row] = controller.brokers(registered=[broker(3, 203)])[CHANGE]
    assert row["leader_epoch"] == epoch + 1
    assert 3 in row["recipients"]
    assert COMPLETE in controller.alter([1, 2, 3])


def test_a_motion_goes_on_under_a_new_controller() -> None:
    controller = with_topic()
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 200 + id_) for id_ in (1, 2, 3)])
    states = [state(1, [1, 2]), state(1, [1, 3])]
    lists = {"adding": [[3], [3]], "removing": [[2], [2]]}
    controller.topic("t", [[1, 3, 2], [1, 3, 2]], states, zk_version=4, **lists)
    said = controller.happen("resync_completed", topics=1)
    first, second = said[CHANGE]
    assert (first["leader_epoch"], first["replicas"]) == (4, [1, 3, 2])
    assert (second["leader_epoch"], second["replicas"]) == (4, [1, 3])
    assert said[COMPLETE]["assignment"] == {"0": [1, 3, 2], "1": [1, 3]}
    assert (said[COMPLETE]["adding"], said[COMPLETE]["removing"]) == ({"0": [3]}, {"0": [2]})


def test_a_leaders_own_write_can_end_it() -> None:
    controller = with_topic()
    controller.move([1, 3])
    row = controller.row("t", 0)
    found = stored(1, [1, 2, 3], leader_epoch=row["leader_epoch"], zk_version=row["zk_version"] + 1)
    said = controller.found("notification", found)
    assert said[COMPLETE]["assignment"] == {"0": [1, 3]}


def test_a_conflict_tells_the_motion_again() -> None:
    controller = with_topic()
    controller.move([1, 3])
    found = stored(1, [1], leader_epoch=4, zk_version=12)
    said = controller.found("conflict", found)
    [row] = said[CHANGE]
    assert (row["leader_epoch"], sorted(row["recipients"])) == (5, [1, 2, 3])
    assert actions(row) & Action.IS_NEW


def test_the_znode_is_not_answered_and_what_it_cannot_have_goes_out_of_it() -> None:
    controller = with_topic()
    said = controller.move([3, 2], [3], partitions=[0, 4], request_id=None)
    assert REPLY not in said
    assert said[REMOVE]["partitions"] == [[4, None]]
    assert motion(controller) == ([3, 2, 1], [3], [1])


def test_the_znode_may_name_brokers_that_are_not_there_yet() -> None:
    controller = with_topic()
    assert REMOVE not in controller.move([9, 1], request_id=None)
    assert motion(controller)[1] == [9]


def test_the_znode_seen_again_changes_nothing() -> None:
    controller = with_topic()
    controller.move([3, 2], request_id=None)
    before = controller.states[0]
    assert controller.move([3, 2], request_id=None) == {}
    assert controller.states[0] == before


def test_a_topic_that_goes_takes_its_requests_along() -> None:
    controller = with_topic()
    controller.move([3, 2], request_id=None)
    said = controller.happen("topic_removed", "t", topic="t")
    assert said[REMOVE]["partitions"] == [[0, None]]


def test_a_topic_in_deletion_does_not_move() -> None:
    controller = with_topic()
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert errors(controller.move([3])) == [ProtocolError.UNKNOWN_TOPIC_OR_PARTITION]


def test_who_is_not_the_controller_moves_nothing() -> None:
    controller = with_topic()
    controller.happen("controller_resigned", reason="test")
    [reply] = controller.move([3]).values()
    assert reply["error"] == ProtocolError.NOT_CONTROLLER
    assert controller.move([3], request_id=None) == {}


@pytest.mark.parametrize(
    "wrong", [{"targets": [[1]]}, {"partitions": [0, 0], "targets": [[1], [2]]}]
)
def test_a_request_that_does_not_fit_together_is_set_aside(wrong: Any) -> None:
    assert list(with_topic().move([1], [2], **wrong)) == [DecisionKind.SET_ASIDE]


def test_an_election_can_end_it_too() -> None:
    controller = with_topic()
    controller.happen("topic_config_changed", "t", topic="t", unclean=True)
    controller.move([3])
    said = controller.brokers(unregistered=[1, 2])
    [row] = said[CHANGE]
    assert (row["leader"], row["isr"], row["replicas"]) == (3, [3], [3])
    assert said[COMPLETE]["assignment"] == {"0": [3]}


def test_a_repair_of_the_topic_keeps_what_is_in_motion() -> None:
    controller = with_topic()
    controller.move([3, 2])
    states = [stored(1, [1, 2], leader_epoch=4, zk_version=8), None]
    said = controller.topic("t", [[1, 2], [1000]], states, zk_version=11)
    assert said[REWRITE]["assignment"] == {"0": [3, 2, 1], "1": [2]}
    assert said[REWRITE]["adding"] == {"0": [3]}
    assert said[REWRITE]["expected_version"] == 11
