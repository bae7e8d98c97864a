"""Topics that are to be deleted, and are read again because a write met another content."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot
from state.decisions import DecisionKind
from state.routing import Layout, topic_scope
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, answer, broker

STOP, REWRITE = DecisionKind.STOP_REPLICAS, DecisionKind.REWRITE_ASSIGNMENT
DELETE, UNMARK = DecisionKind.DELETE_TOPIC, DecisionKind.UNMARK_TOPIC_DELETION
STATE = stored(1, [1, 2])
ID = "AAECAwQFBgcICQoLDA0ODw"


def marked(brokers: tuple[int, ...] = (1, 2)) -> Controller:
    """A cluster with topic t, which is to be deleted, on brokers 1 and 2."""
    controller = Controller(brokers)
    controller.topic("t", [[1, 2]])
    controller.happen("topic_deletion_requested", "t", topic="t")
    return controller


def stopped(said: dict[DecisionKind, Any]) -> list[int]:
    return sorted(row["broker"] for row in said[STOP] if row["delete"])


def test_the_deletion_of_a_topic_that_is_read_again_begins_again_and_ends() -> None:
    controller = marked()
    controller.take_back()
    said = controller.topic("t", [[1, 2]], [STATE])
    assert REWRITE not in said, "its partitions are not new, nothing is to be undone"
    assert stopped(said) == [1, 2]
    assert DELETE not in answer(controller, 1)
    assert DELETE in answer(controller, 2)


def test_a_halted_deletion_waits_again() -> None:
    controller = marked(brokers=(1,))
    controller.take_back()
    said = controller.topic("t", [[1, 2]], [STATE])
    assert (REWRITE in said, stopped(said)) == (False, [1])
    answer(controller, 1)
    assert stopped(controller.brokers(registered=[broker(2, 102)])) == [2]
    assert DELETE in answer(controller, 2)


def test_partitions_that_have_no_state_are_not_brought_online() -> None:
    controller = marked()
    controller.take_back()
    said = controller.topic("t", [[1, 2], [2, 1]], [STATE, None])
    assert stopped(said) == [1, 1, 2, 2]
    assert DecisionKind.REFUSE_TRANSITION not in said
    assert [row["partition"] for row in said[DecisionKind.CHANGE_PARTITIONS]] == [0]


def test_a_topic_is_taken_neither_as_deleted_nor_as_unknown_before_it_was_read_again() -> None:
    controller = marked(brokers=(1,))
    controller.take_back()
    said = controller.brokers(registered=[broker(2, 102)])
    assert DELETE not in said
    assert controller.happen("topic_deletion_requested", "t", topic="t") == {}
    assert stopped(controller.topic("t", [[1, 2]], [STATE])) == [1, 2]


def test_one_that_turns_out_to_be_gone_takes_its_mark_along() -> None:
    controller = marked(brokers=(1,))
    controller.take_back()
    said = controller.happen("topic_removed", "t", topic="t")
    assert said[UNMARK]["topic"] == "t"
    assert STOP not in controller.topic("t", [[1]]), "the next of that name lives"
    assert controller.row("t", 0)["leader"] == 1


ID = "AAECAwQFBgcICQoLDA0ODw"


def marked_while_it_is_read_again(topic_id: str | None = None) -> Controller:
    controller = Controller((1, 2))
    controller.topic("t", [[1, 2]], topic_id=ID)
    controller.take_back()
    mark = {"topic": "t", "topic_id": topic_id}
    assert controller.happen("topic_deletion_requested", "t", **mark) == {}
    return controller


@pytest.mark.parametrize("topic_id", [ID, None])
def test_a_mark_that_comes_while_a_topic_is_read_again_waits_for_that(topic_id: str | None) -> None:
    controller = marked_while_it_is_read_again(topic_id)
    said = controller.topic("t", [[1, 2]], [STATE], topic_id=ID, observed_again=True)
    assert stopped(said) == [1, 2]
    assert DELETE not in answer(controller, 1)
    assert DELETE in answer(controller, 2)


def test_a_mark_that_waited_for_a_topic_that_is_gone_goes() -> None:
    controller = marked_while_it_is_read_again()
    said = controller.happen("topic_removed", "t", topic="t")
    assert said[UNMARK]["topic"] == "t"
    said = controller.happen("topic_deletion_requested", "t", topic="t")
    assert list(said) == [UNMARK], "nothing is awaited any more"


def test_a_mark_waits_for_a_topic_that_was_unknown_before_it_was_read_again() -> None:
    controller = Controller((1, 2))
    assert controller.take_back() == {}
    assert controller.happen("topic_deletion_requested", "t", topic="t") == {}
    assert stopped(controller.topic("t", [[1, 2]], observed_again=True)) == [1, 2]


def test_where_deletion_is_not_allowed_the_mark_goes_at_once() -> None:
    controller = Controller((1, 2), delete_topic_enable=False)
    controller.topic("t", [[1, 2]])
    controller.take_back()
    assert list(controller.happen("topic_deletion_requested", "t", topic="t")) == [UNMARK]


def test_a_mark_of_a_topic_that_is_read_again_outlives_the_end_of_the_load() -> None:
    controller = Controller((1, 2))
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in (1, 2)])
    controller.topic("t", [[1, 2]], [STATE])
    controller.take_back()
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert DELETE not in controller.happen("resync_completed", topics=1)
    assert stopped(controller.topic("t", [[1, 2]], [STATE], observed_again=True)) == [1, 2]
    answer(controller, 1)
    assert DELETE in answer(controller, 2)


def test_an_election_waits_for_no_topic_any_more() -> None:
    controller = Controller((1, 2))
    controller.take_back()
    controller.elect(6)
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = controller.happen("resync_completed", topics=0)
    assert said[DELETE]["leftovers"]


def test_what_is_read_again_is_written_and_read_and_moves_to_the_slot_of_its_name() -> None:
    controller = marked_while_it_is_read_again()
    data = controller.states[0]
    assert controller.slot.table.awaited == {"t"}
    assert encode_machine(decode_machine(data)) == data
    moved = reslot(Snapshot(controller.offset, Layout(1, 1), controller.states), Layout(3, 1))
    tables = [decode_machine(moved.states[key]).table for key in range(3)]
    kept = {topic_scope("t") % 3: {"t"}}
    assert [table.awaited for table in tables] == [kept.get(key, set()) for key in range(3)]
    back = reslot(moved, Layout(1, 1))
    assert back.states[0] == data


def test_a_topic_that_grows_before_its_deletion_begins_is_told_with_the_id_it_gets() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]])
    controller.move([1, 3])
    controller.happen("topic_deletion_requested", "t", topic="t")
    moving = {"adding": [[3], []], "removing": [[2], []]}
    said = controller.topic(
        "t", [[1, 3, 2], [1]], [None, None], new_topic_id=ID, zk_version=2, **moving
    )
    assert (said[REWRITE]["topic_id"], said[REWRITE]["assignment"]) == (ID, {"0": [1, 3, 2]})
    (row,) = said[DecisionKind.CHANGE_PARTITIONS]
    assert (row["name"], row["topic_id"]) == ("t-0", ID)
