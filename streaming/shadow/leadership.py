"""What is compared: a partition's leadership and a topic's assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.partitions.reassignment import Motion
from state.payloads.partitions import StateValues


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's state; version is that of its znode."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovery: int
    version: int

    def agrees_with(self, other: Leadership) -> bool:
        """Return whether both name the same leader and in-sync replicas, whatever it took."""
        return (self.leader, self.isr, self.recovery) == (other.leader, other.isr, other.recovery)

    def as_json(self) -> dict[str, Any]:
        """Return it with names."""
        return {
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
            "recovery": self.recovery,
            "version": self.version,
        }


def from_state(state: Sequence[Any] | None) -> Leadership | None:
    """Read a state as events have it."""
    if state is None:
        return None
    leader, leader_epoch, isr, _, recovery, version = StateValues.of_json(state)
    return Leadership(leader, leader_epoch, tuple(isr), recovery, version)


def to_state(found: Leadership | None, controller_epoch: int) -> list[Any] | None:
    """Return a state as events have it."""
    if found is None:
        return None
    leader, epoch, isr = found.leader, found.leader_epoch, found.isr
    values = StateValues(leader, epoch, isr, controller_epoch, found.recovery, found.version)
    return values.as_json()


def from_row(row: Mapping[str, Any]) -> Leadership:
    """Read an opened row of change_partitions."""
    return Leadership(
        row["leader"],
        row["leader_epoch"],
        tuple(row["isr"]),
        row["recovery"],
        row["partition_epoch"],
    )


Assignment = dict[int, Motion]
"""How a topic's partitions are placed, by number."""


def assignment_of(
    replicas: Mapping[int, Sequence[int]],
    adding: Mapping[int, Sequence[int]],
    removing: Mapping[int, Sequence[int]],
) -> Assignment:
    """Return an assignment out of lists by partition."""
    return {
        number: Motion(
            tuple(ids), frozenset(adding.get(number, ())), frozenset(removing.get(number, ()))
        )
        for number, ids in replicas.items()
    }
