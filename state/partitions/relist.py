"""Replaces replica lists while an event is folded: what is known and marked moves with the ids."""

from __future__ import annotations

import numpy as np

from state.partitions.changes import Changes
from state.partitions.matrix import NONE, Bools, Int32s, Rows, contains, widen


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
    for mask in (changes.recipients, changes.stop, changes.stop_delete):
        mask[at] = (same & mask[at][:, None, :]).any(axis=2)
    rows.replicas[at] = new
    rows.adding[at] = _padded(adding, width)
    rows.removing[at] = _padded(removing, width)


def _widen(changes: Changes, width: int) -> None:
    rows = changes.table.rows
    if rows.replicas.shape[1] >= width:
        return
    rows.replicas = widen(rows.replicas, width)
    missing = ((0, 0), (0, width - rows.replica_state.shape[1]))
    rows.replica_state = np.pad(rows.replica_state, missing)
    rows.offline_dir = np.pad(rows.offline_dir, missing)
    rows.adding = np.pad(rows.adding, missing)
    rows.removing = np.pad(rows.removing, missing)
    changes.recipients = np.pad(changes.recipients, missing)
    changes.stop = np.pad(changes.stop, missing)
    changes.stop_delete = np.pad(changes.stop_delete, missing)


def _padded(mask: Bools, width: int) -> Bools:
    padded: Bools = np.pad(mask, ((0, 0), (0, width - mask.shape[1])))
    return padded
