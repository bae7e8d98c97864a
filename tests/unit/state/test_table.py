"""The look-ups of a slot's partitions."""

from __future__ import annotations

import numpy as np

from state.partitions.table import COLUMN_NAMES, PER_REPLICA, Columns, Deletion
from tests.unit.state.support import Controller


def test_a_mask_of_some_rows_is_false_in_the_others() -> None:
    controller = Controller()
    controller.topic("a", [[1], [2, 3]])
    controller.topic("b", [[3, 1]])
    table = controller.slot.table
    mask = np.array([[True, False], [False, True]])
    spread = table.spread(np.array([2, 1]), mask)
    assert spread.tolist() == [[False, False], [False, True], [True, False]]
    assert not table.spread(np.empty(0, dtype=np.intp), np.empty((0, 2), dtype=bool)).any()


def test_topics_that_are_removed_together_leave_the_others_as_they_were() -> None:
    controller = Controller()
    for name in "abcd":
        controller.topic(name, [[1], [2]])
    table = controller.slot.table
    kept = [table.rows.replicas[table.rows_of(name)].tolist() for name in "bd"]
    table.deletions = {"a": Deletion(), "d": Deletion()}
    table.remove_topics(["c", "nobody", "a"])
    assert [topic.name for topic in table.topics] == ["b", "d"]
    assert [table.topic_index(name) for name in "abcd"] == [None, 0, None, 1]
    assert [table.rows.replicas[table.rows_of(name)].tolist() for name in "bd"] == kept
    assert table.rows.topic.dtype == np.int32
    assert list(table.deletions) == ["d"]
    table.remove_topics(["b", "d"])
    assert (len(table.rows), table.topics) == (0, [])


def test_columns_about_replicas_are_as_wide_as_the_lists() -> None:
    matrices = {name for name in COLUMN_NAMES if getattr(Columns(), name).ndim == 2}
    assert matrices == {"replicas", "isr", *PER_REPLICA}
