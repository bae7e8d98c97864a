"""Topics that are deleted: when a deletion starts, what halts it, how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind
from state.partitions.legal import PartitionState, ReplicaState
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, Said, actions, answer, broker

CHANGE, STOP = DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS
MARK, UNMARK = DecisionKind.MARK_TOPIC_DELETION, DecisionKind.UNMARK_TOPIC_DELETION
DELETE, FORGET = DecisionKind.DELETE_TOPIC, DecisionKind.FORGET_TOPIC
REPLY, REWRITE = DecisionKind.REPLY, DecisionKind.REWRITE_ASSIGNMENT
T_ID, OTHER_ID = "AAECAwQFBgcICQoLDA0ODw", "ERECAwQFBgcICQoLDA0ODw"


def with_topic(brokers: tuple[int, ...] = (1, 2, 3), **config: Any) -> Controller:
    """A cluster with topic t on brokers 1, 2 and 3."""
    controller = Controller(brokers, **config)
    controller.topic("t", [[1, 2, 3]], topic_id=T_ID)
    return controller


def mark(controller: Controller, topic: str = "t", **more: Any) -> dict[DecisionKind, Any]:
    return controller.happen("topic_deletion_requested", topic, topic=topic, **more)


def ask(controller: Controller, topic: str = "t", **more: Any) -> dict[DecisionKind, Any]:
    return controller.happen("delete_topic_requested", topic, request_id="r", topic=topic, **more)


def replica_states(controller: Controller) -> dict[int, ReplicaState]:
    rows = controller.slot.table.rows
    [at] = controller.slot.table.rows_of("t")
    return {
        id_: ReplicaState(state)
        for id_, state in zip(
            rows.replicas[at].tolist(), rows.replica_state[at].tolist(), strict=True
        )
    }


def stops(said: dict[DecisionKind, Any]) -> dict[int, tuple[bool, int]]:
    rows: list[Said] = said.get(STOP, [])
    return {row["broker"]: (row["delete"], row["leader_epoch"]) for row in rows}


def test_a_marked_topic_is_stopped_and_deleted_on_all_its_brokers() -> None:
    controller = with_topic()
    said = mark(controller)
    assert stops(said) == dict.fromkeys((1, 2, 3), (True, -2))
    [row] = said[CHANGE]
    assert actions(row) == Action.WRITE | Action.UPDATE_METADATA | Action.DELETED
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (-1, [3], 1)
    assert controller.row("t", 0)["state"] == PartitionState.NON_EXISTENT
    assert DELETE not in said


def test_a_topic_goes_when_its_last_replica_is_deleted() -> None:
    controller = with_topic()
    mark(controller)
    assert DELETE not in answer(controller, 1)
    assert DELETE not in answer(controller, 3)
    said = answer(controller, 2)
    deleted = {"topic": "t", "topic_id": T_ID, "leftovers": False, "epoch_zk_version": 5}
    assert said[DELETE] == deleted
    assert said[FORGET] == {"topic": "t"}
    assert controller.slot.table.topic("t") is None
    assert not controller.slot.table.deletions


def test_a_topic_that_never_had_a_leader_is_deleted_too() -> None:
    controller = Controller((1,))
    controller.topic("t", [[7]])
    said = mark(controller)
    assert not said.keys() & {CHANGE, DELETE}
    controller.brokers(registered=[broker(7, 107)])
    assert DELETE in answer(controller, 7)


def test_a_topic_without_partitions_goes_at_once() -> None:
    controller = Controller()
    controller.topic("t", [])
    assert DELETE in mark(controller)


def test_what_is_live_is_deleted_while_a_broker_is_down() -> None:
    controller = with_topic()
    controller.brokers(unregistered=[2])
    assert stops(mark(controller)).keys() == {1, 3}
    assert replica_states(controller)[2] is ReplicaState.DELETION_INELIGIBLE
    answer(controller, 1)
    assert DELETE not in answer(controller, 3)
    said = controller.brokers(registered=[broker(2, 202)])
    assert stops(said) == {2: (True, -2)}
    assert not [row for row in said[CHANGE] if row["recipients"]]
    assert DELETE in answer(controller, 2, epoch=202)


def test_a_broker_that_dies_while_it_deletes_deletes_when_it_returns() -> None:
    controller = with_topic()
    mark(controller)
    controller.brokers(unregistered=[2])
    assert replica_states(controller)[2] is ReplicaState.DELETION_INELIGIBLE
    answer(controller, 1)
    answer(controller, 3)
    assert stops(controller.brokers(registered=[broker(2, 202)])) == {2: (True, -2)}
    assert DELETE in answer(controller, 2, epoch=202)


def test_a_broker_that_bounces_while_it_deletes_is_told_again() -> None:
    controller = with_topic((1, 2, 3, 4))
    mark(controller)
    controller.brokers(bounced=[broker(2, 202)])
    assert answer(controller, 2, epoch=102) == {}
    answer(controller, 1)
    assert stops(answer(controller, 3)) == {2: (True, -2)}
    assert DELETE in answer(controller, 2, epoch=202)


def test_an_error_halts_until_a_broker_of_the_topic_returns() -> None:
    controller = with_topic((1, 2, 3, 4))
    mark(controller)
    answer(controller, 2, error=int(ProtocolError.KAFKA_STORAGE_ERROR))
    answer(controller, 1)
    assert stops(answer(controller, 3)) == {2: (False, -2)}
    assert replica_states(controller)[2] is ReplicaState.OFFLINE
    assert controller.slot.table.deletions["t"].halted
    assert stops(controller.brokers(bounced=[broker(4, 204)])) == {}
    assert stops(controller.brokers(bounced=[broker(2, 202)]))[2] == (True, -2)
    assert DELETE in answer(controller, 2, epoch=202)


def test_a_failed_disk_halts_a_deletion() -> None:
    controller = with_topic()
    failed = {
        "broker_id": 2,
        "broker_epoch": 102,
        "partitions": [0],
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR],
    }
    controller.happen("leader_and_isr_answered", "t", topic="t", **failed)
    assert stops(mark(controller)).keys() == {1, 3}
    assert controller.slot.table.deletions["t"].halted


def test_late_and_foreign_answers_say_nothing() -> None:
    controller = with_topic()
    assert answer(controller, 1) == {}
    mark(controller)
    answer(controller, 2, error=ProtocolError.UNKNOWN_SERVER_ERROR)
    before = controller.states[0]
    assert answer(controller, 2) == {}
    assert answer(controller, 1, epoch=7) == {}
    assert controller.states[0] == before


def test_a_deletion_waits_for_a_reassignment_and_the_topic_works_on() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2])], adding=[[3]], removing=[[]])
    assert mark(controller) == {}
    [row] = controller.brokers(unregistered=[2])[CHANGE]
    assert (row["isr"], actions(row) & Action.DELETED) == ([1], 0)


def test_a_deletion_starts_with_the_end_of_a_reassignment() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[3, 1]], [stored(1, [1])], adding=[[3]], removing=[[1]])
    mark(controller)
    said = controller.alter([1, 3])
    assert stops(said) == {1: (True, -2), 3: (True, -2)}
    assert controller.slot.table.deletions["t"].started


def test_nothing_is_elected_for_a_topic_in_deletion() -> None:
    controller = with_topic()
    controller.brokers(unregistered=[3])
    mark(controller)
    controller.brokers(unregistered=[1, 2])
    said = controller.brokers(registered=[broker(1, 201), broker(2, 202)])
    assert all(row["leader"] == -1 for row in said[CHANGE])
    changed = {"unclean.leader.election.enable": True}
    assert CHANGE not in controller.happen("cluster_config_changed", config=changed)


def test_a_controlled_shutdown_leaves_a_topic_in_deletion_alone() -> None:
    controller = with_topic()
    mark(controller)
    said = controller.shut_down(1)
    assert not said.keys() & {CHANGE, STOP, DecisionKind.REPORT_REMAINING}


def test_partitions_that_are_added_during_a_deletion_are_taken_back() -> None:
    controller = with_topic()
    mark(controller)
    said = controller.topic("t", [[1, 2, 3], [1]], topic_id=T_ID, zk_version=4)
    assert said.keys() == {REWRITE}
    assert said[REWRITE]["assignment"] == {"0": [1, 2, 3]}
    assert said[REWRITE]["expected_version"] == 4


def test_a_name_that_is_being_deleted_cannot_be_created() -> None:
    controller = with_topic()
    mark(controller)
    asked = {"partitions": 1, "replication_factor": 1, "start_index": 0, "shift": 0}
    said = controller.happen(
        "create_topic_requested", "t", request_id="r", topic="t", topic_id=OTHER_ID, **asked
    )
    assert said[REPLY]["error"] == ProtocolError.TOPIC_ALREADY_EXISTS


def test_a_topic_in_deletion_neither_grows_nor_elects_on_request() -> None:
    controller = with_topic()
    mark(controller)
    asked = {"partitions": 3, "assignment": None, "validate_only": False}
    said = controller.happen("create_partitions_requested", "t", request_id="r", topic="t", **asked)
    assert said.keys() == {REPLY}
    assert said[REPLY]["error"] == ProtocolError.INVALID_TOPIC_EXCEPTION
    for kind in ("preferred", "unclean"):
        elected = {"election_type": kind, "partitions": [0]}
        said = controller.happen(
            "elect_leaders_requested", "t", request_id="r", topic="t", **elected
        )
        assert said.keys() == {REPLY}
        [answered] = said[REPLY]["partitions"]
        assert answered["error"] == ProtocolError.INVALID_TOPIC_EXCEPTION


def test_the_mark_of_an_unknown_topic_goes() -> None:
    assert mark(Controller(), "u").keys() == {UNMARK}


def test_what_was_asked_of_an_earlier_topic_is_not_done_to_this_one() -> None:
    controller = with_topic()
    assert mark(controller, topic_id=OTHER_ID) == {}
    assert controller.happen("topic_removed", "t", topic="t", topic_id=OTHER_ID) == {}
    assert controller.slot.table.topic("t") is not None
    assert STOP in mark(controller, topic_id=T_ID)


def test_a_topic_that_vanishes_takes_its_mark_along() -> None:
    controller = with_topic()
    mark(controller)
    said = controller.happen("topic_removed", "t", topic="t")
    assert said.keys() == {FORGET, UNMARK}
    assert not controller.slot.table.deletions


def test_marks_are_dropped_where_deletion_is_not_allowed() -> None:
    controller = with_topic(delete_topic_enable=False)
    assert mark(controller).keys() == {UNMARK}
    assert ask(controller)[REPLY]["error"] == ProtocolError.TOPIC_DELETION_DISABLED


def test_a_request_marks_and_starts_and_answers() -> None:
    controller = with_topic()
    said = ask(controller, topic_id=T_ID)
    assert said[MARK] == {"topic": "t", "epoch_zk_version": 5}
    assert (said[REPLY]["api"], said[REPLY]["error"]) == ("delete_topic", 0)
    assert stops(said).keys() == {1, 2, 3}
    assert mark(controller) == {}
    again = ask(controller)
    assert again.keys() == {REPLY}
    assert again[REPLY]["error"] == ProtocolError.UNKNOWN_TOPIC_OR_PARTITION


def test_a_request_for_a_topic_that_waits_to_be_deleted_is_granted_again() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2])], adding=[[3]], removing=[[]])
    assert ask(controller).keys() == {MARK, REPLY}
    again = ask(controller)
    assert ({*again}, again[REPLY]["error"]) == ({REPLY}, 0)


@pytest.mark.parametrize(
    ("topic", "topic_id", "error"),
    [
        ("u", None, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", T_ID, ProtocolError.UNKNOWN_TOPIC_ID),
        ("t", OTHER_ID, ProtocolError.UNKNOWN_TOPIC_ID),
        ("", OTHER_ID, ProtocolError.UNKNOWN_TOPIC_ID),
    ],
)
def test_a_request_for_what_does_not_exist_is_refused(
    topic: str, topic_id: str | None, error: ProtocolError
) -> None:
    said = ask(with_topic(), topic, topic_id=topic_id)
    assert said.keys() == {REPLY}
    assert said[REPLY]["error"] == error


def reload(controller: Controller, live: tuple[int, ...]) -> dict[DecisionKind, Any]:
    """Load again, with topic t as it was written and a mark on it."""
    row = controller.row("t", 0)
    state = stored(
        row["leader"], row["isr"], leader_epoch=row["leader_epoch"], zk_version=row["zk_version"]
    )
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in live])
    mark(controller)
    controller.topic("t", [[1, 2, 3]], [state], topic_id=T_ID)
    return controller.happen("resync_completed", topics=1)


def test_a_deletion_goes_on_after_a_load() -> None:
    controller = with_topic()
    mark(controller)
    answer(controller, 1)
    said = reload(controller, (1, 2, 3))
    assert stops(said) == dict.fromkeys((1, 2, 3), (True, -2))
    assert not [row for row in said[CHANGE] if row["recipients"]]
    for id_ in (1, 2):
        answer(controller, id_)
    assert DELETE in answer(controller, 3)


def test_a_load_with_a_dead_broker_halts_until_it_returns() -> None:
    controller = with_topic()
    assert stops(reload(controller, (1, 3))) == {2: (False, -2)}
    assert controller.slot.table.deletions["t"].halted
    said = controller.brokers(registered=[broker(2, 202)])
    assert stops(said).keys() == {1, 2, 3}


def test_a_return_lets_a_deletion_go_on_even_if_another_broker_leaves_in_the_same_event() -> None:
    controller = with_topic()
    reload(controller, (1, 3))
    said = controller.brokers(registered=[broker(2, 202)], unregistered=[3])
    assert stops(said) == dict.fromkeys((1, 2, 3), (True, -2))
    answer(controller, 1)
    assert DELETE not in answer(controller, 2, epoch=202)
    assert stops(controller.brokers(registered=[broker(3, 203)])) == {3: (True, -2)}
    assert DELETE in answer(controller, 3, epoch=203)


def test_a_load_finishes_a_deletion_that_was_cut_short() -> None:
    controller = Controller()
    controller.elect(6)
    mark(controller)
    said = controller.happen("resync_completed", topics=0)
    left = {"topic": "t", "topic_id": None, "leftovers": True, "epoch_zk_version": 6}
    assert said[DELETE] == left


def test_a_load_drops_marks_where_deletion_is_not_allowed() -> None:
    controller = Controller()
    controller.elect(6, delete_topic_enable=False)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2, 3)])
    for topic in ("t", "u"):
        mark(controller, topic)
        controller.topic(topic, [[1, 2, 3]])
    said = controller.happen("resync_completed", topics=2, several=UNMARK)
    assert said[UNMARK] == [{"topic": topic, "epoch_zk_version": 6} for topic in ("t", "u")]
    assert STOP not in said


def test_a_lost_write_is_followed_by_a_second_order_to_delete() -> None:
    controller = with_topic()
    mark(controller)
    said = controller.found("conflict", stored(1, [1, 2], zk_version=4))
    assert stops(said) == dict.fromkeys((1, 2, 3), (True, -2))
    assert controller.row("t", 0)["state"] == PartitionState.NON_EXISTENT


def test_a_topic_that_could_not_be_marked_lives_on() -> None:
    controller = with_topic()
    assert MARK in ask(controller)
    controller.take_back(unmarked=True)
    said = controller.topic("t", [[1, 2, 3]], [stored(1, [1, 2, 3])], topic_id=T_ID)
    assert (STOP in said, controller.row("t", 0)["leader"]) == (False, 1)
    said = controller.brokers(unregistered=[1])
    assert [row["leader"] for row in said[CHANGE]] == [2]
    assert MARK in ask(controller), "it may be asked for again"
