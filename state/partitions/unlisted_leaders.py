"""Brokers that alone have a partition's data, and that its topic does not list."""

from __future__ import annotations

import numpy as np

from state.matrix import NONE, Int32s, Rows, any_in_row, contains, first_where
from state.partitions.changes import Changes
from state.partitions.legal import PartitionState
from state.partitions.machine import move_partitions
from state.partitions.reassignment import Motion, begin_reassignments, motion_of
from state.partitions.slot import Slot
from state.partitions.table import Columns


def recall_unlisted(slot: Slot, changes: Changes, at: Rows) -> None:
    """List leaders of offline rows `at` again that are live and not listed, as replicas that are to
    go, and let them lead until others are in sync.

    A reassignment was taken back while such a leader alone was in sync (`states.drop_unlisted`).
    Once its broker restarts it does not lead any more unless it is told to.
    """
    at, ids = _unlisted(slot, at)
    rows = slot.table.rows
    for topic in np.unique(rows.topic[at]).tolist():
        of_topic = rows.topic[at] == topic
        recalled = zip(at[of_topic].tolist(), ids[of_topic].tolist(), strict=True)
        begin_reassignments(
            slot, changes, at[of_topic], [_with_removed(rows, *one) for one in recalled]
        )
    move_partitions(slot, changes, at, PartitionState.ONLINE)


def _unlisted(slot: Slot, at: Rows) -> tuple[Rows, Int32s]:
    """Return the rows that nobody else can lead, and the broker int32[k] that can.

    It has to be the stored leader: one that was the last in sync, and leads no more, may have been
    made to delete what it had.
    """
    rows = slot.table.rows
    at = at[(rows.state[at] == PartitionState.OFFLINE) & rows.has_state[at]]
    at = at[slot.may_write(at) & ~slot.table.in_deletion()[at]]
    isr = rows.isr[at]
    listed = (isr != NONE) & contains(rows.replicas[at], isr)
    ids = first_where(isr, slot.online_members(at) & (isr == rows.leader[at][:, None]))
    alone = (ids != NONE) & ~any_in_row(listed)
    return at[alone], ids[alone]


def _with_removed(rows: Columns, row: int, id_: int) -> Motion:
    """Return how a row's replicas are moving, with one more that goes."""
    now = motion_of(rows, row)
    return Motion((*now.replicas, id_), now.adding, now.removing | {id_})
