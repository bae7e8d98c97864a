"""Reads partition state znodes in bulk and writes them as events carry them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from streaming.process.counters import Counters
from streaming.zk.multiread import read_in_parts
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import PartitionStates, parse_partition_states, partition_state_path

logger = logging.getLogger(__name__)

StateTuple = list[int | list[int]]
"""`StateValues.as_json`, of which this is the type."""


def read_states(
    session: ZkReader, partitions: Sequence[tuple[str, int]], counters: Counters
) -> list[StateTuple | None]:
    """Read the states of (topic, partition)s; None where there is no znode, or a broken one.

    A broken one is logged and counted as broken_partition_states. Raises the errors of read_many.
    """
    if not partitions:
        return []
    paths = [partition_state_path(topic, partition) for topic, partition in partitions]
    read: list[StateTuple | None] = []
    for columns, _ in read_in_parts(session, paths):
        states = parse_partition_states(columns.data, columns.version)
        for row, error in states.errors.items():
            logger.warning("%s is passed over: %s", paths[len(read) + row], error)
            counters["broken_partition_states"] += 1
        read += state_tuples(states)
    return read


def state_tuples(states: PartitionStates) -> list[StateTuple | None]:
    """Return columns as one list per row, None where no state is present.

    Written out in the order of `StateValues`: there is one for each partition of a cluster.
    """
    sizes = (states.isr >= 0).sum(axis=1).tolist()
    rows = zip(
        states.present.tolist(),
        states.leader.tolist(),
        states.leader_epoch.tolist(),
        states.isr.tolist(),
        sizes,
        states.controller_epoch.tolist(),
        states.recovery.tolist(),
        states.zk_version.tolist(),
        strict=True,
    )
    return [
        [leader, leader_epoch, isr[:size], controller_epoch, recovery, zk_version]
        if present
        else None
        for present, leader, leader_epoch, isr, size, controller_epoch, recovery, zk_version in rows
    ]
