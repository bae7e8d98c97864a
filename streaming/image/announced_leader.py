"""The leader that brokers are told of for a topic that this node leads, beside ZooKeeper's.

ZooKeeper keeps naming a broker as leader. Brokers are told of this node, one leader epoch behind
ZooKeeper's: whoever is the controller after us announces ZooKeeper's leader with an epoch that is
new to every broker, and that broker loads the groups (docs/adr/0008-giving-groups-back.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, overload

import numpy as np

from state.blocks import Column
from state.matrix import Bools, Int32s, Rows
from streaming.image.cluster_image import ClusterImage
from streaming.wire.partition_rows import PartitionRows

_BEHIND = 1
"""By how much the leader epoch told to brokers is behind ZooKeeper's."""

_FIRST_ANNOUNCED_EPOCH = 2
"""The least leader epoch in ZooKeeper with which a partition is announced as ours: ZooKeeper's was
announced when the partition was made, and ours must be newer.
"""


Epochs = TypeVar("Epochs", int, Int32s)


@overload
def is_announced_as_ours(leader: int, epoch: int) -> bool: ...
@overload
def is_announced_as_ours(leader: Int32s, epoch: Int32s) -> Bools: ...
def is_announced_as_ours(leader: int | Int32s, epoch: int | Int32s) -> bool | Bools:
    """Return whether brokers are told that we lead partitions of the topic that ZooKeeper has with
    this leader and leader epoch.
    """
    ours: bool | Bools = (leader >= 0) & (epoch >= _FIRST_ANNOUNCED_EPOCH)
    return ours


def announced_epoch(epoch: Epochs) -> Epochs:
    """Return the leader epoch announced for partitions of ours that have this one in ZooKeeper."""
    return epoch - _BEHIND


def with_announced_leader(rows: PartitionRows, topic: str, node_id: int) -> PartitionRows:
    """Return rows with this node as the leader of those partitions of the topic that have one."""
    if topic not in rows.topic_names:
        return rows
    of_topic = rows.topic_index == rows.topic_names.index(topic)
    leader, epoch = _announced(of_topic, rows.leader, rows.leader_epoch, node_id)
    return replace(rows, leader=leader, leader_epoch=epoch)


def announced_columns(
    image: ClusterImage, at: slice | Rows, topic: str | None, node_id: int
) -> dict[str, Column]:
    """Return the columns of rows of an image, with this node as the leader where brokers are told
    so; topic: None when they are told nothing of the kind.
    """
    columns = {name: column[at] for name, column in image.columns.items()}
    span = slice(0, 0) if topic is None else image.rows_of(topic)
    if span.start == span.stop:
        return columns
    rows = np.arange(len(image))[at]
    of_topic = (rows >= span.start) & (rows < span.stop)
    leader, epoch = _announced(of_topic, columns["leader"], columns["leader_epoch"], node_id)
    return columns | {"leader": leader, "leader_epoch": epoch}


def _announced(
    of_topic: Bools, leader: Int32s, epoch: Int32s, node_id: int
) -> tuple[Int32s, Int32s]:
    """Return leaders and leader epochs as brokers are told them."""
    ours = of_topic & is_announced_as_ours(leader, epoch)
    return np.where(ours, np.int32(node_id), leader), np.where(ours, announced_epoch(epoch), epoch)
