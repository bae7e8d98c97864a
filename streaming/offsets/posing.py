"""How this node poses as leader of a topic: what brokers are told, beside what ZooKeeper holds.

ZooKeeper keeps naming a broker as leader. Brokers are told of this node, one leader epoch behind
ZooKeeper's: whoever is the controller after us announces ZooKeeper's leader with an epoch that is
new to every broker, and that broker loads the groups (docs/adr/0008-giving-groups-back.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streaming.wire.partition_rows import PartitionRows

BEHIND = np.int32(1)
"""By how much the leader epoch told to brokers is behind ZooKeeper's."""

FIRST_POSED_EPOCH = 2
"""The least leader epoch in ZooKeeper with which a partition is told to be ours: one of its own was
told to brokers when the partition was made, and ours must be newer.
"""


def as_told(rows: PartitionRows, topic: str, node_id: int) -> PartitionRows:
    """Return rows with this node as the leader of those partitions of the topic that have one."""
    if topic not in rows.topic_names:
        return rows
    of_topic = rows.topic_index == rows.topic_names.index(topic)
    posed = of_topic & (rows.leader >= 0) & (rows.leader_epoch >= FIRST_POSED_EPOCH)
    return replace(
        rows,
        leader=np.where(posed, np.int32(node_id), rows.leader),
        leader_epoch=np.where(posed, rows.leader_epoch - BEHIND, rows.leader_epoch),
    )
