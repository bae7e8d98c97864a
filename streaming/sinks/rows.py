"""From columns of partitions, as decisions and the image keep them, to what the wide RPCs carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from state.blocks import Column
from state.matrix import Bools, Int32s, keep
from state.topic_ids import topic_id_from_text
from streaming.image.cluster_image import ClusterImage
from streaming.wire.partition_rows import PartitionRows

NO_ROWS = PartitionRows(
    topic_names=[],
    topic_ids=np.empty((0, 16), dtype=np.uint8),
    topic_index=np.empty(0, dtype=np.int32),
    partition=np.empty(0, dtype=np.int32),
    controller_epoch=np.empty(0, dtype=np.int32),
    leader=np.empty(0, dtype=np.int32),
    leader_epoch=np.empty(0, dtype=np.int32),
    isr=np.empty((0, 0), dtype=np.int32),
    partition_epoch=np.empty(0, dtype=np.int32),
    replicas=np.empty((0, 0), dtype=np.int32),
    offline_replicas=np.empty((0, 0), dtype=np.int32),
    adding=np.empty((0, 0), dtype=np.int32),
    removing=np.empty((0, 0), dtype=np.int32),
    is_new=np.empty(0, dtype=bool),
    leader_recovery_state=np.empty(0, dtype=np.int8),
    delete_partition=np.empty(0, dtype=bool),
)


def topic_id_matrix(topic_ids: Sequence[str | None]) -> npt.NDArray[np.uint8]:
    """Return uint8[T, 16] from base64url topic ids; zero rows for topics without one."""
    joined = b"".join(topic_id_from_text(topic_id) for topic_id in topic_ids)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(topic_ids), 16)


def partition_rows(
    columns: Mapping[str, Column],
    topic_index: Int32s,
    topics: list[str],
    topic_ids: Sequence[str | None],
) -> PartitionRows:
    """Return rows from columns named as in change_partitions; topic_index never decreases."""
    count = len(topic_index)
    return PartitionRows(
        topic_names=topics,
        topic_ids=topic_id_matrix(topic_ids),
        topic_index=topic_index,
        partition=columns["partition"],
        controller_epoch=columns["controller_epoch"],
        leader=columns["leader"],
        leader_epoch=columns["leader_epoch"],
        isr=columns["isr"],
        partition_epoch=columns["partition_epoch"],
        replicas=columns["replicas"],
        offline_replicas=_those(columns["replicas"], columns["offline"]),
        adding=_those(columns["replicas"], columns["adding"]),
        removing=_those(columns["replicas"], columns["removing"]),
        is_new=np.zeros(count, dtype=bool),
        leader_recovery_state=columns["recovery"],
        delete_partition=np.zeros(count, dtype=bool),
    )


def _those(replicas: Int32s, mask: Bools) -> Int32s:
    """Return the marked replicas of each row, int32[n, 0] where none is: that is the rule."""
    return keep(replicas, mask) if mask.any() else replicas[:, :0]


def image_rows(image: ClusterImage) -> PartitionRows:
    """Return every partition of the image that has ever had a leader."""
    if not len(image):
        return NO_ROWS
    index, names = image.topic_of_rows()
    ids = [image.topic_ids[name] for name in names]
    return partition_rows(image.columns, index, names, ids)
