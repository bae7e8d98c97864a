"""Columns of many partitions in the order of their keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from state.blocks import Column
from state.change_columns import CHANGE_COLUMNS, PADDING, stack_column
from state.matrix import Rows, pad_columns

PARTITION_COLUMNS = tuple(one.name for one in CHANGE_COLUMNS if one.kept)

Keys = npt.NDArray[np.int64]
Columns = dict[str, Column]


class PartitionColumns:
    """The PARTITION_COLUMNS of n partitions, ascending by key int64[n].

    Rows that were appended are stacked when the columns are next looked at, so that the creation of
    many topics stays linear.
    """

    def __init__(self) -> None:
        """Start without rows."""
        self._keys: Keys = np.empty(0, dtype=np.int64)
        self._columns: Columns = {}
        self._appended: list[tuple[Keys, Columns]] = []

    @property
    def keys(self) -> Keys:
        """int64[n], ascending."""
        self._stack()
        return self._keys

    @property
    def by_name(self) -> Columns:
        """The columns by name, all of length n; {} before the first row."""
        self._stack()
        return self._columns

    def append(self, keys: Keys, fresh: Columns) -> None:
        """Add rows, in any order, of which every key is above all that are there."""
        if (np.diff(keys) < 0).any():
            order = np.argsort(keys, kind="stable")
            keys, fresh = keys[order], {name: column[order] for name, column in fresh.items()}
        self._appended.append((keys, fresh))

    def upsert(self, keys: Keys, fresh: Columns) -> None:
        """Replace the rows that are there, add the others."""
        if not self.by_name:
            self._columns = {name: column[:0].copy() for name, column in fresh.items()}
        at, known = self._locate(keys)
        for name, column in fresh.items():
            self._columns[name], values = _same_width(name, self._columns[name], column)
            self._columns[name][at[known]] = values[known]
        if not known.all():
            self._insert(keys[~known], {name: column[~known] for name, column in fresh.items()})

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop all rows but those where kept bool[n] holds."""
        self._keys = self.keys[kept]
        self._columns = {name: column[kept] for name, column in self._columns.items()}

    def rekey(self, keys: Keys) -> None:
        """Give all rows other keys int64[n], in the same order."""
        self._keys = keys

    def _stack(self) -> None:
        if not self._appended:
            return
        parts = [(self._keys, self._columns)] if self._columns else []
        parts += self._appended
        self._appended = []
        self._keys = np.concatenate([keys for keys, _ in parts])
        self._columns = {
            name: stack_column(name, [columns[name] for _, columns in parts])
            for name in PARTITION_COLUMNS
        }

    def _locate(self, keys: Keys) -> tuple[Rows, npt.NDArray[np.bool_]]:
        at = np.searchsorted(self._keys, keys)
        inside = np.minimum(at, max(len(self._keys) - 1, 0))
        found = self._keys[inside] == keys if len(self._keys) else np.zeros(len(keys), dtype=bool)
        return inside, found

    def _insert(self, keys: Keys, fresh: Columns) -> None:
        keys = np.concatenate([self._keys, keys])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        for name, column in fresh.items():
            self._columns[name] = stack_column(name, [self._columns[name], column])[order]


def _same_width(name: str, left: Column, right: Column) -> tuple[Column, Column]:
    if name not in PADDING:
        return left, right
    width = max(left.shape[1], right.shape[1])
    return pad_columns(left, width, PADDING[name]), pad_columns(right, width, PADDING[name])
