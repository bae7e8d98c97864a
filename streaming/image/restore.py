"""The image out of the machines of a checkpoint, without asking ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from state.cluster.cluster import Cluster
from state.cluster.machine import brokers_body
from state.groups.slot import GroupSlot
from state.merge import MergedDecision, merge
from state.partitions.changes import Changes
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.slot import Slot
from state.partitions.table import PartitionTable
from state.step import Machine
from streaming.image.cluster_image import ClusterImage


def image_of(machines: Iterable[Machine]) -> ClusterImage:
    """Return the image that the decisions of these machines would have led to.

    It is empty unless they are the controller's and have loaded everything. Before that they hold a
    part of what is coming in, and no more what was decided in the term before.
    """
    image = ClusterImage()
    known = list(machines)
    if not any(isinstance(one, Cluster) and _has_loaded(one) for one in known):
        return image
    for machine in known:
        if isinstance(machine, Cluster):
            image.update_brokers(brokers_body(machine, introduced=[], complete=False))
        elif isinstance(machine, Slot):
            _add_slot(image, machine)
    return image


def paused_of(machines: Iterable[Machine]) -> bool:
    """Return whether they decide nothing now, by an operator's wish."""
    return any(isinstance(one, Cluster) and one.authority.paused for one in machines)


def timers_of(machines: Iterable[Machine]) -> dict[str, int]:
    """Return the armed timers: deadline in ms by name."""
    found: dict[str, int] = {}
    for machine in machines:
        if isinstance(machine, Cluster):
            found |= machine.timers
        elif isinstance(machine, GroupSlot):
            found |= machine.timers()
    return found


def unfinished_deletions(machines: Iterable[Machine]) -> list[MergedDecision]:
    """Return what brokers may not have heard of topics in deletion: that they are gone, and which
    replicas are to be deleted and not answered for.
    """
    found = []
    for machine in machines:
        if isinstance(machine, Slot):
            rows = machine.table.rows
            changes = Changes.about_cluster(machine.table, offset=-1)
            changes.metadata |= machine.table.in_deletion() & rows.has_state
            changes.stop |= rows.replica_state == ReplicaState.DELETION_STARTED
            changes.stop_delete |= changes.stop
            changes.stop_unlisted(np.flatnonzero(rows.state == PartitionState.NON_EXISTENT))
            found.extend(changes.finish(machine.authority, machine.brokers))
    return merge(found)


def _has_loaded(cluster: Cluster) -> bool:
    return cluster.authority.is_loaded


def _add_slot(image: ClusterImage, slot: Slot) -> None:
    changes = Changes.about_cluster(slot.table, offset=-1)
    changes.metadata |= slot.table.rows.has_state
    for decision in changes.finish(slot.authority, slot.brokers):
        image.apply(decision.kind, decision.body)
    image.stateless |= _stateless(slot.table)


def _stateless(table: PartitionTable) -> set[tuple[str, int]]:
    """Return the partitions of which nobody can be told anything: their state is gone."""
    rows = table.rows
    gone = (rows.state == PartitionState.OFFLINE) & ~rows.has_state & ~table.in_deletion()
    named = [table.topics[topic].name for topic in rows.topic[gone].tolist()]
    return set(zip(named, rows.partition[gone].tolist(), strict=True))
