"""The columns of `change_partitions`: one table for what writes, merges, keeps and opens its rows.

docs/decision-log.md has the same table for readers of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from state.blocks import Column
from state.matrix import NONE, stack_padded

_IDS, _MARKS = "<i4", "|b1"


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """A column.

    lists: a matrix with a list a row: of broker ids in order, or of marks on those of `replicas`.
    kept: it tells what the partition is from then on, and not what the event did to it.
    """

    name: str
    dtype: str
    meaning: str
    lists: bool = False
    kept: bool = True

    @property
    def padding(self) -> int | bool:
        """What stands in a matrix where a row's list is over."""
        return False if self.dtype == _MARKS else NONE

    def blank(self, count: int) -> Column:
        """Return rows that say nothing: zeros, or empty lists."""
        if self.lists:
            return np.full((count, 1), self.padding, dtype=self.dtype)
        return np.zeros(count, dtype=self.dtype)


CHANGE_COLUMNS = (
    ChangeColumn("topic", "<i4", "index into `topics`", kept=False),
    ChangeColumn("partition", "<i4", "number"),
    ChangeColumn("leader", "<i4", "as it is after the event; -1: none"),
    ChangeColumn("leader_epoch", "<i4", "as it is after the event"),
    ChangeColumn(
        "partition_epoch",
        "<i4",
        "version of the state znode after the write; the expected version is one less",
    ),
    ChangeColumn("controller_epoch", "<i4", "of the state; the header's where it is written"),
    ChangeColumn("leader_before", "<i4", "before the event", kept=False),
    ChangeColumn("recovery", "|i1", "leader recovery state"),
    ChangeColumn("actions", "|u1", "bits, below", kept=False),
    ChangeColumn("rule", "|i1", "why, below", kept=False),
    ChangeColumn("isr", _IDS, "in order", lists=True),
    ChangeColumn("replicas", _IDS, "in order", lists=True),
    ChangeColumn("offline", _MARKS, "not live or on a failed disk", lists=True),
    ChangeColumn("adding", _MARKS, "being added", lists=True),
    ChangeColumn("removing", _MARKS, "being removed", lists=True),
    ChangeColumn(
        "recipients",
        _MARKS,
        "who gets LeaderAndIsr; those that are not registered are left out when it is sent",
        lists=True,
        kept=False,
    ),
)
"""Their order is that of the block."""

ID_LISTS = tuple(one.name for one in CHANGE_COLUMNS if one.lists and one.dtype == _IDS)
REPLICA_MASKS = tuple(one.name for one in CHANGE_COLUMNS if one.lists and one.dtype == _MARKS)
PADDING: Mapping[str, int | bool] = {one.name: one.padding for one in CHANGE_COLUMNS if one.lists}
"""What stands in each matrix where a row's list is over."""


def stack_column(name: str, parts: Sequence[Column]) -> Column:
    """Return the rows of all parts of a column, in order; matrices padded to the widest."""
    return stack_padded(parts, PADDING[name]) if name in PADDING else np.concatenate(parts)
