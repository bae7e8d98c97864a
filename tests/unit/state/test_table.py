"""The look-ups of a slot's partitions."""

from __future__ import annotations

import numpy as np

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
