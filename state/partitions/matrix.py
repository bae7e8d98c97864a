"""Small vectorised tools for lists of broker ids kept as padded int32 matrices.

A matrix int32[n, W] holds one list of at most W ids per row, in order, padded on the right with -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int32s: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.intp]

NONE = -1


def pad_rows(lists: Sequence[Sequence[int]]) -> Int32s:
    """Return int32[n, W] with one list per row, W the longest list's length."""
    width = max(map(len, lists), default=0)
    flat = [value for values in lists for value in (*values, *([NONE] * (width - len(values))))]
    return np.array(flat, dtype=np.int32).reshape(len(lists), width)


def unpad(row: Int32s) -> list[int]:
    """Return one row's ids as a list."""
    return [value for value in row.tolist() if value != NONE]


def widen(matrix: Int32s, width: int) -> Int32s:
    """Return the matrix padded to at least `width` columns."""
    missing = width - matrix.shape[1]
    if missing <= 0:
        return matrix
    return np.pad(matrix, ((0, 0), (0, missing)), constant_values=NONE)


def keep(matrix: Int32s, mask: Bools) -> Int32s:
    """Return each row's ids where mask bool[n, W] holds, in order, packed to the left."""
    kept = np.where(mask, matrix, NONE)
    order = np.argsort(kept == NONE, axis=1, kind="stable")
    packed: Int32s = np.take_along_axis(kept, order, axis=1)
    return packed


def first_where(matrix: Int32s, mask: Bools) -> Int32s:
    """Return int32[n]: each row's first id where mask bool[n, W] holds, -1 where there is none."""
    if matrix.shape[1] == 0:
        return np.full(len(matrix), NONE, dtype=np.int32)
    position = np.argmax(mask, axis=1)
    rows = np.arange(len(matrix))
    return np.where(mask[rows, position], matrix[rows, position], np.int32(NONE))


def contains(matrix: Int32s, others: Int32s) -> Bools:
    """Return bool[n, V]: whether each id of others int32[n, V] is in the same row of matrix;
    padding is not.
    """
    found: Bools = (others[:, :, None] == matrix[:, None, :]).any(axis=2) & (others != NONE)
    return found


def equal_lists(left: Int32s, right: Int32s) -> Bools:
    """Return bool[n]: whether both matrices hold the same list, in the same order, in a row."""
    width = max(left.shape[1], right.shape[1])
    equal: Bools = (widen(left, width) == widen(right, width)).all(axis=1)
    return equal


def lengths(matrix: Int32s) -> Int32s:
    """Return int32[n]: how many ids each row holds."""
    counted: Int32s = (matrix != NONE).sum(axis=1, dtype=np.int32)
    return counted
