"""Topics that are to be deleted while a reassignment of theirs is under way."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import Action, DecisionKind
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, broker

CHANGE, STOP, REMOVE, REPLY = (
    DecisionKind.CHANGE_PARTITIONS,
    DecisionKind.STOP_REPLICAS,
    DecisionKind.REMOVE_REASSIGNMENTS,
    DecisionKind.REPLY,
)
STATE = stored(1, [1, 2])
Decided = dict[DecisionKind, Any]


ID, OTHER = "AAECAwQFBgcICQoLDA0ODw", "ERECAwQFBgcICQoLDA0ODw"


def mark(controller: Controller) -> Decided:
    return controller.happen("topic_deletion_requested", "t", topic="t")


def withdraw(controller: Controller, topic_id: str = ID) -> Decided:
    return controller.happen("topic_deletion_withdrawn", "t", topic="t", topic_id=topic_id)


def moving(controller: Controller) -> Decided:
    """Partition 0 of topic t is on its way from brokers 1 and 2 to 1 and 3."""
    lists: dict[str, Any] = {"adding": [[3], []], "removing": [[2], []], "topic_id": ID}
    return controller.topic("t", [[1, 3, 2], [1, 2]], [STATE, STATE], **lists)


def deleted_on(said: Decided) -> set[int]:
    return {row["broker"] for row in said.get(STOP, []) if row["delete"]}


@pytest.mark.parametrize("target", [None, [1, 2]])
def test_what_a_deletion_waits_for_can_be_taken_back(target: list[int] | None) -> None:
    controller = Controller((1, 2))
    moving(controller)
    assert mark(controller) == {}
    said = controller.move(target, several=REMOVE)
    assert [one["error"] for one in said[REPLY]["partitions"]] == [ProtocolError.NONE]
    assert deleted_on(said) >= {1, 2}
    assert controller.slot.table.deletions["t"].started


def test_what_a_deletion_waits_for_can_take_another_way() -> None:
    controller = Controller((1, 2, 4))
    moving(controller)
    mark(controller)
    said = controller.move([1, 4])
    assert said[REPLY]["partitions"][0]["error"] == ProtocolError.NONE
    assert deleted_on(said) == {3}
    assert deleted_on(controller.alter([1, 2, 4])) >= {1, 4}


def test_no_other_partition_of_a_topic_that_is_to_be_deleted_begins_to_move() -> None:
    controller = Controller((1, 2))
    moving(controller)
    mark(controller)
    said = controller.move([2, 1], partitions=[1])
    assert said.keys() == {REPLY}
    error = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    assert said[REPLY]["partitions"][0]["error"] == error


def test_a_load_with_a_dead_broker_does_not_halt_what_waits() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101), broker(3, 103)])
    mark(controller)
    moving(controller)
    said = controller.happen("resync_completed", topics=1)
    assert not any(actions(row) & Action.DELETED for row in said[CHANGE])
    assert not deleted_on(said)
    assert deleted_on(controller.alter([1, 3])) >= {1, 3}
    assert controller.slot.table.deletions["t"].halted, "partition 1 is on broker 2 too"


def test_a_deletion_that_waits_is_over_when_its_mark_goes() -> None:
    controller = Controller((1, 2, 3))
    moving(controller)
    mark(controller)
    assert withdraw(controller) == {}
    assert controller.slot.table.deletions == {}
    said = controller.alter([1, 2, 3])
    assert deleted_on(said) == {2}, "of partition 0, which has moved"
    assert controller.row("t", 0)["replicas"] == [1, 3]
    said = controller.move([2, 1], partitions=[1], several=REMOVE)
    assert said[REPLY]["partitions"][0]["error"] == ProtocolError.NONE


def test_a_mark_that_goes_while_its_topic_is_read_again_is_said_to_go_behind_it() -> None:
    """While the topic is not known nobody can tell whether its deletion waits or has begun."""
    controller = Controller((1, 2, 3))
    moving(controller)
    mark(controller)
    controller.take_back()
    withdraw(controller)
    moving(controller)
    assert not controller.slot.table.deletions["t"].started
    assert withdraw(controller) == {}
    assert controller.slot.table.deletions == {}
    assert deleted_on(controller.alter([1, 2, 3])) == {2}, "of partition 0, which has moved"


def test_what_is_said_of_an_earlier_topics_mark_holds_up_nothing() -> None:
    controller = Controller((1, 2, 3))
    moving(controller)
    mark(controller)
    assert withdraw(controller, OTHER) == {}
    assert "t" in controller.slot.table.deletions


def test_a_deletion_that_has_begun_goes_on_when_its_mark_goes() -> None:
    controller = Controller((1, 2, 3))
    moving(controller)
    mark(controller)
    controller.alter([1, 2, 3])
    assert withdraw(controller) == {}
    assert controller.slot.table.deletions["t"].started


def test_a_deletion_that_a_load_found_halted_goes_on_when_its_mark_goes() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101)])
    mark(controller)
    controller.topic("t", [[1, 2]], [STATE], topic_id=ID)
    controller.happen("resync_completed", topics=1)
    assert withdraw(controller) == {}
    assert controller.slot.table.deletions["t"].halted


def test_a_topic_whose_mark_went_can_be_marked_again() -> None:
    controller = Controller((1, 2, 3))
    moving(controller)
    mark(controller)
    withdraw(controller)
    asked = controller.happen("delete_topic_requested", "t", request_id="d", topic="t")
    assert DecisionKind.MARK_TOPIC_DELETION in asked
    assert deleted_on(controller.alter([1, 2, 3])) >= {1, 3}
