"""How this node poses as leader of a topic: what brokers are told, beside what ZooKeeper holds.

ZooKeeper keeps naming a broker as leader. Brokers are told of this node, one leader epoch behind
ZooKeeper's: whoever is the controller after us announces ZooKeeper's leader with an epoch that is
new to every broker, and that broker loads the groups (docs/adr/0008-giving-groups-back.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, overload

import numpy as np

from state.matrix import Bools, Int32s
from streaming.wire.partition_rows import PartitionRows

_BEHIND = 1
"""By how much the leader epoch told to brokers is behind ZooKeeper's."""

_FIRST_POSED_EPOCH = 2
"""The least leader epoch in ZooKeeper with which a partition is told to be ours: one of its own was
told to brokers when the partition was made, and ours must be newer.
"""


Epochs = TypeVar("Epochs", int, Int32s)


@overload
def is_posed(leader: int, epoch: int) -> bool: ...
@overload
def is_posed(leader: Int32s, epoch: Int32s) -> Bools: ...
def is_posed(leader: int | Int32s, epoch: int | Int32s) -> bool | Bools:
    """Return whether brokers are told that we lead partitions of the topic that ZooKeeper has with
    this leader and leader epoch.
    """
    posed: bool | Bools = (leader >= 0) & (epoch >= _FIRST_POSED_EPOCH)
    return posed


def announced_epoch(epoch: Epochs) -> Epochs:
    """Return the leader epoch told to brokers of posed partitions with this one in ZooKeeper."""
    return epoch - _BEHIND


def as_told(rows: PartitionRows, topic: str, node_id: int) -> PartitionRows:
    """Return rows with this node as the leader of those partitions of the topic that have one."""
    if topic not in rows.topic_names:
        return rows
    of_topic = rows.topic_index == rows.topic_names.index(topic)
    posed = of_topic & is_posed(rows.leader, rows.leader_epoch)
    return replace(
        rows,
        leader=np.where(posed, np.int32(node_id), rows.leader),
        leader_epoch=np.where(posed, announced_epoch(rows.leader_epoch), rows.leader_epoch),
    )
