"""How all partitions stand at one moment, in columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state.matrix import NONE, Bools, Int32s, contains, count_in_row, lengths, stack_padded
from state.partitions.slot import Slot
from state.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Standing:
    """One row a partition; those that have no leader yet, or are being deleted, are not in use.

    topic: names, object[n]. partition int32[n]. in_use bool[n]. leader int32[n]: the one that is
    online, -1 where there is none. isr int32[n, W] padded with -1. too_few bool[n]: it has a
    leader, and fewer replicas in sync than producers with acks=all need.
    """

    topic: npt.NDArray[np.object_]
    partition: Int32s
    in_use: Bools
    leader: Int32s
    isr: Int32s
    too_few: Bools

    @property
    def leaderless(self) -> Bools:
        """bool[n]: in use, and nobody leads it."""
        none: Bools = self.in_use & (self.leader == NONE)
        return none

    def moved_since(self, before: Standing) -> Bools:
        """Return bool[n]: another broker leads it than before, if one led it then."""
        led = (self.leader != NONE) & (before.leader != NONE)
        moved: Bools = led & (self.leader != before.leader)
        return moved

    def unclean_since(self, before: Standing) -> Bools:
        """Return bool[n]: somebody leads it that was not in sync before, so that records may be
        lost.
        """
        in_sync = contains(before.isr, self.leader[:, None])[:, 0]
        changed = before.in_use & (self.leader != NONE) & (self.leader != before.leader)
        unclean: Bools = changed & ~in_sync
        return unclean

    def places(self, rows: Bools) -> list[TopicPartition]:
        """Return which partitions rows bool[n] are, in order."""
        named = zip(self.topic[rows].tolist(), self.partition[rows].tolist(), strict=True)
        return sorted(named)

    def leaders(self) -> dict[int, int]:
        """Return how many partitions each broker leads, of those that lead any."""
        ids, counts = np.unique(self.leader[self.leader != NONE], return_counts=True)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def standing_of(slots: Iterable[Slot]) -> Standing:
    """Return how the partitions of all slots stand, in the order of the slots and their rows."""
    found = [_of_slot(slot) for slot in slots]
    return Standing(
        topic=np.concatenate([one.topic for one in found]),
        partition=np.concatenate([one.partition for one in found]),
        in_use=np.concatenate([one.in_use for one in found]),
        leader=np.concatenate([one.leader for one in found]),
        isr=stack_padded([one.isr for one in found], NONE),
        too_few=np.concatenate([one.too_few for one in found]),
    )


def _of_slot(slot: Slot) -> Standing:
    rows = slot.table.rows
    names = np.array([topic.name for topic in slot.table.topics], dtype=object)
    in_use = rows.has_state & ~slot.table.in_deletion()
    led = in_use & slot.is_led(np.arange(len(rows)))
    # With fewer replicas than min.insync.replicas all are needed (Partition.effectiveMinIsr).
    needed = np.minimum(slot.min_insync_replicas(), lengths(rows.replicas))
    return Standing(
        topic=names[rows.topic] if len(rows) else names[:0],
        partition=rows.partition.copy(),
        in_use=in_use,
        leader=np.where(led, rows.leader, np.int32(NONE)),
        isr=rows.isr.copy(),
        too_few=led & (count_in_row(rows.isr != NONE) < needed),
    )
