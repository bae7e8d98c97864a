"""Replaces replica lists while an event is folded: what is known and marked moves with the ids."""

from __future__ import annotations

import numpy as np

from state.matrix import NONE, Bools, Int32s, Rows, contains, pad_columns, widen
from state.partitions.changes import REPLICA_MARKS, Changes
from state.partitions.table import PER_REPLICA


def replace_replicas(
    changes: Changes, at: Rows, replicas: Int32s, adding: Bools, removing: Bools
) -> None:
    """Give rows `at` new lists int32[k, W] with masks bool[k, W] of what is being added or removed.

    Replica states, failed directories and the event's marks stay with their broker. A replica that
    leaves keeps only that it is to be stopped.
    """
    _widen(changes, replicas.shape[1])
    rows = changes.table.rows
    width = rows.replicas.shape[1]
    old, new = rows.replicas[at], widen(replicas, width)
    changes.keep_stops(at, (old != NONE) & ~contains(new, old))
    same = (new[:, :, None] == old[:, None, :]) & (new != NONE)[:, :, None]
    for column in (rows.replica_state, rows.offline_dir):
        column[at] = np.where(same, column[at][:, None, :], 0).max(axis=2, initial=0)
    for name in REPLICA_MARKS:
        mask = getattr(changes, name)
        mask[at] = (same & mask[at][:, None, :]).any(axis=2)
    rows.replicas[at] = new
    rows.adding[at] = pad_columns(adding, width, 0)
    rows.removing[at] = pad_columns(removing, width, 0)


def settle_replicas(changes: Changes, at: Rows, replicas: Int32s) -> None:
    """Give rows `at` new lists int32[k, W] of which nothing comes or goes."""
    none = np.zeros(replicas.shape, dtype=bool)
    replace_replicas(changes, at, replicas, none, none)


def _widen(changes: Changes, width: int) -> None:
    rows = changes.table.rows
    if rows.replicas.shape[1] >= width:
        return
    rows.replicas = widen(rows.replicas, width)
    for name in PER_REPLICA:
        setattr(rows, name, pad_columns(getattr(rows, name), width, 0))
    for name in REPLICA_MARKS:
        setattr(changes, name, pad_columns(getattr(changes, name), width, 0))
