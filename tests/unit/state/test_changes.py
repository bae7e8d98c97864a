"""Marks on rows become the blocks of the event, or of each of the events, that they come from."""

from __future__ import annotations

import numpy as np
import pytest

from state.blocks import decode_block
from state.change_columns import CHANGE_COLUMNS, REPLICA_MASKS
from state.decisions import Decision, DecisionKind, Rule
from state.partitions import deletion
from state.partitions.changes import REPLICA_MARKS, Changes
from state.partitions.legal import ReplicaState
from state.partitions.refusals import RefusalReason
from state.partitions.slot import Slot
from tests.unit.state.support import Controller


@pytest.fixture
def slot() -> Slot:
    controller = Controller()
    for name in ("a", "b"):
        controller.topic(name, [[1, 2], [2, 3]])
    return controller.slot


def everything_about(slot: Slot, name: str, changes: Changes) -> list[Decision]:
    """Write, stop, refuse and complete something of a topic."""
    at = slot.table.rows_of(name)
    changes.mark_written(at, Rule.LEADER_EPOCH_BUMPED)
    changes.stop[at] = True
    changes.refusals.add_partitions(at[:1], 1, RefusalReason.ILLEGAL_MOVE)
    changes.refusals.add_partitions(at[1:], 2, RefusalReason.NO_STATE)
    changes.complete(at)
    return changes.finish(slot.authority, slot.brokers)


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_topics_changes_are_the_same_bytes_in_events_about_it_and_about_the_cluster(
    slot: Slot, name: str
) -> None:
    rows, topics = slot.table.rows, slot.table.topics
    before = rows.leader_epoch.copy(), rows.zk_version.copy(), topics[0].zk_version
    said = everything_about(slot, name, Changes.about_cluster(slot.table, 7))
    rows.leader_epoch[:], rows.zk_version[:] = before[:2]
    for topic in topics:
        topic.zk_version = before[2]
    assert everything_about(slot, name, Changes.about_topics(slot.table, {name: 7})) == said
    assert len({decision.kind for decision in said}) == 5


def test_each_topic_is_decided_about_by_its_own_event(slot: Slot) -> None:
    changes = Changes.about_topics(slot.table, {"a": 7, "b": 8})
    changes.metadata[:] = True
    found = changes.finish(slot.authority, slot.brokers)
    assert [(one.offset, one.kind) for one in found] == [
        (7, DecisionKind.CHANGE_PARTITIONS),
        (8, DecisionKind.CHANGE_PARTITIONS),
    ]


def test_changes_are_finished_once(slot: Slot) -> None:
    changes = Changes.about_cluster(slot.table, 7)
    changes.mark_written(slot.table.rows_of("a"), Rule.LEADER_EPOCH_BUMPED)
    changes.finish(slot.authority, slot.brokers)
    with pytest.raises(AssertionError, match="rise once"):
        changes.finish(slot.authority, slot.brokers)


def test_marks_on_replicas_are_as_wide_as_the_lists(slot: Slot) -> None:
    marks = vars(Changes.about_cluster(slot.table, 7)).items()
    matrices = {name for name, one in marks if isinstance(one, np.ndarray) and one.ndim == 2}
    assert matrices == {*REPLICA_MARKS}


def test_a_change_has_the_columns_of_the_table(slot: Slot) -> None:
    changes = Changes.about_cluster(slot.table, 7)
    changes.metadata[:] = True
    [found] = changes.finish(slot.authority, slot.brokers)
    columns, _ = decode_block(found.body)
    of_block = [(name, one.dtype.str, one.ndim == 2) for name, one in columns.items()]
    assert of_block == [(one.name, one.dtype, one.lists) for one in CHANGE_COLUMNS]
    assert all(columns[name].shape == columns["replicas"].shape for name in REPLICA_MASKS)


@pytest.mark.parametrize("gone", [{"a", "b"}, {"b"}])
def test_an_event_about_topics_ends_no_other_deletion(slot: Slot, gone: set[str]) -> None:
    deletion.mark(slot, ["a", "b"])
    rows = slot.table.rows
    rows.replica_state[rows.replicas >= 0] = np.int8(ReplicaState.DELETION_SUCCESSFUL)
    changes = Changes.about_cluster(slot.table, 7)
    if gone == {"b"}:
        changes = Changes.about_topics(slot.table, {"b": 7})
    found = deletion.finish_with_deletions(slot, changes)
    deleted = [one for one in found if one.kind is DecisionKind.DELETE_TOPIC]
    assert [one.offset for one in deleted] == [7] * len(gone)
    assert {"a", "b"} - {topic.name for topic in slot.table.topics} == gone
