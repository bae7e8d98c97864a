"""Topics that are to be deleted, and are read again because a write met another content."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind
from tests.unit.state.support import Controller, answer, broker

STOP, REWRITE = DecisionKind.STOP_REPLICAS, DecisionKind.REWRITE_ASSIGNMENT
DELETE, UNMARK = DecisionKind.DELETE_TOPIC, DecisionKind.UNMARK_TOPIC_DELETION
STATE = [1, 0, [1, 2], 5, 0, 0]


def marked(brokers: tuple[int, ...] = (1, 2)) -> Controller:
    """A cluster with topic t, which is to be deleted, on brokers 1 and 2."""
    controller = Controller(brokers)
    controller.topic("t", [[1, 2]])
    controller.happen("topic_deletion_requested", "t", topic="t")
    return controller


def read_again(controller: Controller) -> dict[DecisionKind, Any]:
    return controller.happen("topic_removed", "t", topic="t", observed_again=True)


def stopped(said: dict[DecisionKind, Any]) -> list[int]:
    return sorted(row["broker"] for row in said[STOP] if row["delete"])


def test_the_deletion_of_a_topic_that_is_read_again_begins_again_and_ends() -> None:
    controller = marked()
    read_again(controller)
    said = controller.topic("t", [[1, 2]], [STATE])
    assert REWRITE not in said, "its partitions are not new, nothing is to be undone"
    assert stopped(said) == [1, 2]
    assert DELETE not in answer(controller, 1)
    assert DELETE in answer(controller, 2)


def test_a_halted_deletion_waits_again() -> None:
    controller = marked(brokers=(1,))
    read_again(controller)
    said = controller.topic("t", [[1, 2]], [STATE])
    assert (REWRITE in said, stopped(said)) == (False, [1])
    answer(controller, 1)
    assert stopped(controller.brokers(registered=[broker(2, 102)])) == [2]
    assert DELETE in answer(controller, 2)


def test_partitions_that_have_no_state_are_not_brought_online() -> None:
    controller = marked()
    read_again(controller)
    said = controller.topic("t", [[1, 2], [2, 1]], [STATE, None])
    assert stopped(said) == [1, 1, 2, 2]
    assert DecisionKind.REFUSE_TRANSITION not in said
    assert [row["partition"] for row in said[DecisionKind.CHANGE_PARTITIONS]] == [0]


def test_a_topic_is_taken_neither_as_deleted_nor_as_unknown_before_it_was_read_again() -> None:
    controller = marked(brokers=(1,))
    read_again(controller)
    said = controller.brokers(registered=[broker(2, 102)])
    assert DELETE not in said
    assert controller.happen("topic_deletion_requested", "t", topic="t") == {}
    assert stopped(controller.topic("t", [[1, 2]], [STATE])) == [1, 2]


def test_one_that_turns_out_to_be_gone_takes_its_mark_along() -> None:
    controller = marked(brokers=(1,))
    read_again(controller)
    said = controller.happen("topic_removed", "t", topic="t")
    assert said[UNMARK]["topic"] == "t"
    assert STOP not in controller.topic("t", [[1]]), "the next of that name lives"
    assert controller.row("t", 0)["leader"] == 1
