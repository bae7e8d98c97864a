"""A group slot: buckets of groups, what is configured, and which partitions we coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from state.groups.bucket import Bucket, decode_bucket
from state.groups.buckets import timer_name
from state.groups.config import GroupConfig
from state.groups.tables import CoordinatorPhase


class Ownership(NamedTuple):
    """What we are for a partition of `__consumer_offsets`, and the epoch that said so."""

    epoch: int
    phase: CoordinatorPhase


@dataclass(slots=True)
class GroupSlot:
    """State of one group slot.

    stored: bytes of buckets that no event of this batch concerns. transactional: those of them with
    a group that takes part in an open transaction.
    """

    config: GroupConfig = field(default_factory=GroupConfig)
    partitions: dict[int, Ownership] = field(default_factory=dict)
    stored: dict[int, bytes] = field(default_factory=dict)
    transactional: set[int] = field(default_factory=set)
    opened: dict[int, Bucket] = field(default_factory=dict)

    def bucket(self, number: int) -> Bucket:
        """Return a bucket, opened."""
        found = self.opened.get(number)
        if found is None:
            data = self.stored.pop(number, None)
            found = Bucket() if data is None else decode_bucket(data)
            self.opened[number] = found
        return found

    def numbers(self) -> list[int]:
        """Return the buckets that have ever had a group, ascending."""
        return sorted([*self.stored, *self.opened])

    def timers(self) -> dict[str, int]:
        """Return the armed timers: deadline in ms by name."""
        armed = {number: self.bucket(number).armed_ms for number in self.numbers()}
        return {timer_name(one): at for one, at in armed.items() if at is not None}

    def phase(self, partition: int) -> CoordinatorPhase:
        """Return what we are for a partition."""
        found = self.partitions.get(partition)
        return CoordinatorPhase.NONE if found is None else found.phase
