"""Small vectorised tools for lists of broker ids kept as padded int32 matrices.

A matrix int32[n, W] holds one list of at most W ids per row, in order, padded on the right with -1.

Lists are short and rows are many, so all of this goes column by column: numpy's reductions over a
short last axis take ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int32s: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.intp]

NONE = -1

_IDS_IN_A_TABLE = 1 << 16
"""Ids of brokers are mostly small; a table of larger ones would take longer to make."""


def pad_rows(lists: Sequence[Sequence[int]]) -> Int32s:
    """Return int32[n, W] with one list per row, W the longest list's length."""
    sizes = [*map(len, lists)]
    ids = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=sum(sizes))
    return cut_into_rows(ids, sizes)


def cut_into_rows(ids: Int32s, sizes: Sequence[int]) -> Int32s:
    """Return int32[n, W] with the next sizes[i] of the ids, sum(sizes) in all, in row i; W the
    largest size.
    """
    width = max(sizes, default=0)
    if len(ids) == len(sizes) * width:
        return ids.reshape(len(sizes), width)
    matrix = np.full((len(sizes), width), NONE, dtype=np.int32)
    matrix[np.arange(width) < np.array(sizes)[:, None]] = ids
    return matrix


def unpad(row: Int32s) -> list[int]:
    """Return one row's ids as a list."""
    return [value for value in row.tolist() if value != NONE]


def unpad_rows(matrix: Int32s) -> list[list[int]]:
    """Return each row's ids as a list."""
    return [[value for value in row if value != NONE] for row in matrix.tolist()]


def widen(matrix: Int32s, width: int) -> Int32s:
    """Return the matrix padded to at least `width` columns."""
    return pad_columns(matrix, max(width, matrix.shape[1]), NONE)


def pad_columns(matrix: npt.NDArray[Any], width: int, fill: int | bool) -> npt.NDArray[Any]:
    """Return a matrix [n, W] with columns of one value behind its own, `width` in all; itself when
    it has as many.
    """
    if matrix.shape[1] == width:
        return matrix
    padded = np.full((len(matrix), width), fill, dtype=matrix.dtype)
    padded[:, : matrix.shape[1]] = matrix
    return padded


def stack_padded(matrices: Sequence[npt.NDArray[Any]], fill: int | bool) -> npt.NDArray[Any]:
    """Return the rows of all matrices [n, W], in order, padded to the widest with one value."""
    width = max((matrix.shape[1] for matrix in matrices), default=0)
    return np.concatenate([pad_columns(matrix, width, fill) for matrix in matrices])


def keep(matrix: Int32s, mask: Bools) -> Int32s:
    """Return each row's ids where mask bool[n, W] holds, in order, packed to the left."""
    packed = np.full_like(matrix, NONE)
    filled = np.zeros(len(matrix), dtype=np.intp)
    for column in range(matrix.shape[1]):
        ids = matrix[:, column]
        rows = np.flatnonzero(mask[:, column] & (ids != NONE))
        packed[rows, filled[rows]] = ids[rows]
        filled[rows] += 1
    return packed


def first_ids(matrix: Int32s) -> Int32s:
    """Return int32[n]: each row's first id, of a replica list the preferred replica; -1 where it
    has none.
    """
    if matrix.shape[1] == 0:
        return np.full(len(matrix), NONE, dtype=np.int32)
    first: Int32s = matrix[:, 0]
    return first


def first_where(matrix: Int32s, mask: Bools) -> Int32s:
    """Return int32[n]: each row's first id where mask bool[n, W] holds, -1 where there is none."""
    first = np.full(len(matrix), NONE, dtype=np.int32)
    for column in reversed(range(matrix.shape[1])):
        np.copyto(first, matrix[:, column], where=mask[:, column])
    return first


def contains(matrix: Int32s, others: Int32s) -> Bools:
    """Return bool[n, V]: whether each id of others int32[n, V] is in the same row of matrix;
    padding is not.
    """
    found = np.zeros(others.shape, dtype=bool)
    for ids in matrix.T:
        found |= others == ids[:, None]
    found &= others != NONE
    return found


def among(ids: Int32s, ascending: Int32s) -> Bools:
    """Return a mask shaped like ids: the id is one of int32[k], ascending."""
    if len(ascending) == 0:
        return np.zeros(ids.shape, dtype=bool)
    if ascending[0] >= 0 and ascending[-1] < _IDS_IN_A_TABLE:
        # Looked up, which a search takes ten times as long for; at both ends who is none of them.
        table = np.zeros(ascending[-1] + 3, dtype=bool)
        table[ascending + 1] = True
        return table.take(ids + 1, mode="clip")
    nearest = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    found: Bools = ascending[nearest] == ids
    return found


def places_of(matrix: Int32s, ids: Iterable[int]) -> dict[int, tuple[Rows, Rows]]:
    """Return the rows, ascending, and the columns in which each of the ids stands.

    One sort for all of them: a comparison for each id looks at the whole matrix each time.
    """
    size, width = matrix.size, matrix.shape[1]
    keys = np.sort(matrix.ravel() * np.int64(size) + np.arange(size))
    found = {}
    for id_ in ids:
        start, end = np.searchsorted(keys, (id_ * size, (id_ + 1) * size))
        found[id_] = np.divmod(keys[start:end] - id_ * size, width)
    return found


def any_in_row(mask: Bools) -> Bools:
    """Return bool[n]: mask bool[n, W] holds somewhere in the row."""
    found = np.zeros(len(mask), dtype=bool)
    for column in mask.T:
        found |= column
    return found


def all_in_row(mask: Bools) -> Bools:
    """Return bool[n]: mask bool[n, W] holds everywhere in the row."""
    found = np.ones(len(mask), dtype=bool)
    for column in mask.T:
        found &= column
    return found


def count_in_row(mask: Bools) -> Int32s:
    """Return int32[n]: at how many places of the row mask bool[n, W] holds."""
    counted = np.zeros(len(mask), dtype=np.int32)
    for column in mask.T:
        counted += column
    return counted


def equal_lists(left: Int32s, right: Int32s) -> Bools:
    """Return bool[n]: whether both matrices hold the same list, in the same order, in a row."""
    width = max(left.shape[1], right.shape[1])
    return all_in_row(widen(left, width) == widen(right, width))


def lengths(matrix: Int32s) -> Int32s:
    """Return int32[n]: how many ids each row holds."""
    return count_in_row(matrix != NONE)
