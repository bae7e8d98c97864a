"""The order in which brokers that fail together leave an ISR: recorded from Kafka's controller."""

from __future__ import annotations

import numpy as np
import pytest

from state.matrix import pad_rows
from state.partitions.removal_order import last_to_leave, removal_rank


@pytest.mark.parametrize(
    ("count", "order"),
    [
        (6, [5, 1, 6, 2, 3, 4]),
        (20, [5, 10, 14, 20, 1, 6, 9, 13, 2, 17, 12, 7, 3, 18, 16, 11, 8, 19, 4, 15]),
    ],
)
def test_brokers_leave_in_the_order_of_scalas_hash_map(count: int, order: list[int]) -> None:
    ids = np.arange(1, count + 1, dtype=np.int32)
    assert ids[np.argsort(removal_rank(ids))].tolist() == order


@pytest.mark.parametrize(("isr", "stays"), [([5, 2], 2), ([3, 6], 3), ([1, 4], 4), ([7], 7)])
def test_the_last_to_leave_stays(isr: list[int], stays: int) -> None:
    assert last_to_leave(pad_rows([isr, [9, 9, 9]])).tolist()[0] == stays


def test_nobody_stays_in_an_empty_isr() -> None:
    assert last_to_leave(pad_rows([[], []])).tolist() == [-1, -1]
    assert last_to_leave(pad_rows([[], [3]])).tolist() == [-1, 3]
