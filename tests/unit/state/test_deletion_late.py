"""What was read of a topic before it was deleted, and is heard of afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot
from state.blocks import decode_block, encode_block
from state.decisions import DecisionKind
from state.partitions.table import DELETED_FOR_EVENTS, Deleted, PartitionTable, Topic
from state.routing import Layout, topic_scope
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, answer

FORGET, CHANGE = DecisionKind.FORGET_TOPIC, DecisionKind.CHANGE_PARTITIONS
UNMARK, MARK = DecisionKind.UNMARK_TOPIC_DELETION, DecisionKind.MARK_TOPIC_DELETION
ID, OTHER = "AAECAwQFBgcICQoLDA0ODw", "ERECAwQFBgcICQoLDA0ODw"
STATE = stored(1, [1, 2])


def create(controller: Controller, topic_id: str | None) -> dict[DecisionKind, Any]:
    return controller.happen(
        "create_topic_requested",
        "t",
        request_id="r",
        topic="t",
        topic_id=topic_id,
        partitions=1,
        replication_factor=2,
        assignment={"0": [1, 2]},
        start_index=0,
        shift=0,
    )


def with_deleted(topic_id: str | None = ID) -> Controller:
    """Topic t was created here and is deleted, all that before it was observed."""
    controller = Controller((1, 2))
    create(controller, topic_id)
    controller.happen("delete_topic_requested", "t", request_id="d", topic="t")
    for id_ in (1, 2):
        said = answer(controller, id_)
    assert DecisionKind.DELETE_TOPIC in said
    return controller


@pytest.mark.parametrize("states", [[STATE], None])
def test_a_late_echo_does_not_bring_it_back(states: list[Any] | None) -> None:
    controller = with_deleted()
    assert controller.topic("t", [[1, 2]], states, topic_id=ID) == {}
    assert controller.slot.table.topic("t") is None
    gone = controller.happen("topic_removed", "t", topic="t", topic_id=ID)
    assert gone == {FORGET: {"topic": "t"}}
    assert controller.slot.table.deleted == {}


def test_the_next_topic_of_that_name_is_not_taken_for_it() -> None:
    controller = with_deleted()
    create(controller, OTHER)
    assert controller.topic("t", [[1, 2]], [STATE], topic_id=ID) == {}
    assert controller.topic("t", [[1, 2]], [STATE], topic_id=OTHER) == {}
    assert controller.happen("topic_removed", "t", topic="t", topic_id=ID) == {}
    assert controller.row("t", 0)["leader"] == 1


def test_one_that_is_to_be_observed_again_is_taken_as_it_is() -> None:
    controller = with_deleted()
    controller.take_back()
    assert CHANGE in controller.topic("t", [[1, 2]], [STATE], topic_id=ID)


def test_a_load_takes_what_is_there() -> None:
    controller = with_deleted()
    controller.elect(6)
    controller.topic("t", [[1, 2]], [STATE], topic_id=ID)
    assert controller.slot.table.topic("t") is not None


def test_a_deleted_topic_is_written_and_read_and_moves_to_the_slot_of_its_name() -> None:
    controller = with_deleted()
    data = controller.states[0]
    assert encode_machine(decode_machine(data)) == data
    noted = {"t": Deleted(bytes(range(16)), controller.offset - 1)}
    assert controller.slot.table.deleted == noted
    moved = reslot(Snapshot(controller.offset, Layout(1, 1), controller.states), Layout(3, 1))
    tables = [decode_machine(moved.states[key]).table for key in range(3)]
    kept = {topic_scope("t") % 3: noted}
    assert [table.deleted for table in tables] == [kept.get(key, {}) for key in range(3)]


@pytest.mark.parametrize("created", [ID, None])
def test_a_late_mark_goes_and_the_topic_that_was_created_since_stays(created: str | None) -> None:
    controller = with_deleted(None)
    create(controller, created)
    late = {"topic": "t", "topic_id": None}
    gone = controller.happen("topic_deletion_requested", "t", **late)
    assert gone == {UNMARK: {"topic": "t", "epoch_zk_version": 5}}
    assert controller.row("t", 0)["leader"] == 1
    assert controller.topic("t", [[1, 2]], [STATE], topic_id=created) == {}
    said = controller.happen("topic_deletion_requested", "t", **late)
    assert DecisionKind.STOP_REPLICAS in said, "it was seen before it was marked"


def test_a_late_mark_stays_with_the_topic_that_was_marked_since() -> None:
    controller = Controller((1, 2))
    create(controller, ID)
    said = controller.happen("delete_topic_requested", "t", request_id="d", topic="t")
    assert MARK in said
    late = {"topic": "t", "topic_id": None}
    assert controller.happen("topic_deletion_requested", "t", **late) == {}
    assert controller.happen("topic_removed", "t", **late) == {}, "its deletion goes on"
    for id_ in (1, 2):
        said = answer(controller, id_)
    assert DecisionKind.DELETE_TOPIC in said


@pytest.mark.parametrize("created", [ID, None])
def test_a_late_removal_says_nothing_about_the_topic_that_was_created_since(
    created: str | None,
) -> None:
    controller = with_deleted(None)
    create(controller, created)
    late = {"topic": "t", "topic_id": None}
    assert controller.happen("topic_removed", "t", **late) == {}
    assert controller.row("t", 0)["leader"] == 1
    assert controller.topic("t", [[1, 2]], [STATE], topic_id=created) == {}
    assert controller.happen("topic_removed", "t", **late) == {FORGET: {"topic": "t"}}
    assert controller.slot.table.topic("t") is None, "it was seen before it went"


def test_one_that_could_not_be_written_is_taken_back_though_nobody_has_seen_it() -> None:
    controller = Controller((1, 2))
    create(controller, ID)
    again = controller.take_back()
    assert again == {FORGET: {"topic": "t", "observed_again": True}}
    assert controller.slot.table.topic("t") is None


def test_that_a_topic_was_not_seen_yet_is_written_and_read() -> None:
    controller = Controller((1, 2))
    create(controller, ID)
    data = controller.states[0]
    assert encode_machine(decode_machine(data)) == data
    assert not controller.slot.table.topics[0].seen
    controller.topic("t", [[1, 2]], topic_id=ID)
    assert controller.slot.table.topics[0].seen


def test_a_deletion_is_remembered_for_so_many_events() -> None:
    controller = with_deleted()
    deleted_at = controller.offset - 1
    controller.offset = deleted_at + DELETED_FOR_EVENTS
    assert controller.topic("t", [[1, 2]], [STATE], topic_id=ID) == {}
    assert CHANGE in controller.topic("t", [[1, 2]], [STATE], topic_id=ID)


def test_what_does_not_count_any_more_goes_with_the_next_deletion() -> None:
    table = PartitionTable()
    for name, offset in (("a", 0), ("b", 1), ("a", 2), ("c", DELETED_FOR_EVENTS + 2)):
        table.note_deleted(Topic(name, bytes(range(16)), None, 0), offset)
    assert list(table.deleted) == ["a", "c"]


def test_version_2_did_not_say_when_a_topic_was_deleted() -> None:
    columns, extra = decode_block(with_deleted().states[0])
    before = {"format": 2, "deleted": [["t", ID]]}
    slot = decode_machine(encode_block(columns, extra | before))
    assert slot.table.deleted == {"t": Deleted(bytes(range(16)), 0)}
