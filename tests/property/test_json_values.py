"""Columns are read from lists of an event as each list by itself would be, or refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.json_values import broker_id_lists
from state.limits import REPLICAS_MAX
from state.matrix import unpad_rows
from state.payloads.partitions import StateValues, states_from_json

IDS = st.integers(0, 2**31 - 1)
LISTS = st.one_of(
    st.lists(st.lists(IDS, max_size=4), max_size=6),
    st.lists(st.lists(IDS, min_size=3, max_size=3), max_size=6),
    st.lists(st.just([]), max_size=6),
)
NO_IDS = (True, None, 1.0, "1", [], -1, 2**31, 2**63, -(2**63) - 1, 2**70)
NO_LISTS = (None, 0, False, "", "1", {}, [-1], [[]], [*range(REPLICAS_MAX + 1)])


@given(LISTS)
def test_lists_of_broker_ids_become_padded_rows(lists: list[list[int]]) -> None:
    matrix = broker_id_lists(lists, len(lists))
    assert unpad_rows(matrix) == lists
    assert matrix.shape == (len(lists), max(map(len, lists), default=0))
    assert matrix.dtype == np.int32


@given(LISTS, st.data())
def test_one_wrong_id_or_list_refuses_all(lists: list[Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(lists)))
    if data.draw(st.booleans()):
        lists.insert(at, data.draw(st.sampled_from(NO_LISTS)))
    else:
        ids = data.draw(st.lists(IDS, max_size=2))
        lists.insert(at, [*ids, data.draw(st.sampled_from(NO_IDS))])
    with pytest.raises((TypeError, ValueError, OverflowError)):
        broker_id_lists(lists, len(lists))


@given(LISTS, st.integers(0, 7))
def test_another_number_of_lists_is_refused(lists: list[list[int]], count: int) -> None:
    if count != len(lists):
        with pytest.raises(ValueError, match="lists of broker ids"):
            broker_id_lists(lists, count)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_no_states_at_all_are_read_as_one_missing_for_each_partition(count: int) -> None:
    none, each = states_from_json(None, count), states_from_json([None] * count, count)
    for column in fields(none):
        left, right = getattr(none, column.name), getattr(each, column.name)
        assert (left.dtype, left.tolist()) == (right.dtype, right.tolist())
        assert left.shape == right.shape


def test_states_are_refused_for_another_number_of_partitions() -> None:
    state = StateValues(1, 0, [1], 0, 0, 0).as_json()
    with pytest.raises(ValueError, match="1 states for 2 partitions"):
        states_from_json([state], 2)
