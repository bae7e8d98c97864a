"""Columns of padded rows against what a look at each row by itself finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from state.matrix import among, pad_rows, places_of

IDS = (0, 1, 2, 7, 2**31 - 1)


@given(st.lists(st.lists(st.sampled_from(IDS), unique=True, max_size=4), max_size=6))
def test_the_places_of_an_id_are_where_it_stands(lists: list[list[int]]) -> None:
    matrix = pad_rows(lists)
    for id_, (rows, columns) in places_of(matrix, (*IDS, 5)).items():
        expected_rows, expected_columns = np.nonzero(matrix == id_)
        assert rows.tolist() == expected_rows.tolist()
        assert columns.tolist() == expected_columns.tolist()


ANY_ID = st.one_of(st.integers(-1, 9), st.integers(65_530, 65_540), st.integers(-1, 2**31 - 1))


@given(st.lists(st.lists(ANY_ID, min_size=3, max_size=3), max_size=8), st.sets(ANY_ID, max_size=8))
def test_who_is_among_is_found_whatever_the_ids(rows: list[list[int]], known: set[int]) -> None:
    ids = np.array(rows, dtype=np.int32).reshape(-1, 3)
    found = among(ids, np.array(sorted(known), dtype=np.int32))
    assert found.tolist() == [[id_ in known for id_ in row] for row in ids.tolist()]
