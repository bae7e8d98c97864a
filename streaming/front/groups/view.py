"""What this node coordinates now, for parts of the front that only read it."""

from __future__ import annotations

from collections.abc import Collection

from state.groups.image import GroupImage
from state.groups.tables import CoordinatorPhase
from streaming.front.groups.decisions import GroupDecisions
from streaming.front.groups.terms import GroupTerms
from streaming.gateway.coordinators import coordinator_partition
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.node_role import NodeRole


class CoordinatorView:
    """The groups as decided so far, and what this node is for them and their partitions."""

    def __init__(
        self,
        leader: OffsetsLeader,
        terms: GroupTerms,
        decisions: GroupDecisions,
        node_role: NodeRole,
    ) -> None:
        """Look at parts that others change."""
        self._leader = leader
        self._terms = terms
        self._decisions = decisions
        self.node_role = node_role

    @property
    def image(self) -> GroupImage:
        """Return the groups as decided so far."""
        return self._decisions.image

    @property
    def led(self) -> Collection[int]:
        """Return the partitions of __consumer_offsets whose log is ours."""
        return self._leader.logs.keys()

    def is_served(self, partition: int) -> bool:
        """Return whether all that was loaded of a partition is decided."""
        return self._terms.is_served(partition)

    def partition_of(self, group: str) -> int:
        """Return the group's partition of __consumer_offsets, -1 while there are none."""
        count = self._leader.partition_count
        return coordinator_partition(group, count) if count else -1

    def phase(self, partition: int) -> CoordinatorPhase:
        """Return what this node is for a partition: brokers name us before we know its groups."""
        if self._terms.is_served(partition):
            return CoordinatorPhase.OWNED
        known = self.node_role.is_controller() and partition in self._leader.facts
        return CoordinatorPhase.LOADING if known else CoordinatorPhase.NONE

    def phases(self) -> list[CoordinatorPhase]:
        """Return what this node is for each partition."""
        return [self.phase(partition) for partition in self._leader.facts]
