"""Partitions as clients of one listener see them, from rows of the image."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from state.blocks import Column
from state.matrix import NONE, Bools, Int32s, among, any_in_row, keep
from state.protocol_errors import ProtocolError
from streaming.gateway.metadata_encoder import MetadataPartitions
from streaming.image.cluster_image import ClusterImage

_LISTENER_NOT_FOUND_SINCE = 6


def visible_partitions(
    image: ClusterImage, columns: Mapping[str, Column], reachable: Collection[int], version: int
) -> MetadataPartitions:
    """Return rows of the image, as columns, for clients that reach the nodes `reachable`.

    Source: ZkMetadataCache.getPartitionMetadata. A leader that cannot be reached is named -1:
    LEADER_NOT_AVAILABLE, or from version 6 LISTENER_NOT_FOUND when its broker is there but lacks
    the listener. Version 0 leaves out replicas that cannot be reached and says
    REPLICA_NOT_AVAILABLE.
    """
    if not len(image):
        return _nothing()
    node_ids = np.array(sorted(reachable), dtype=np.int32)
    led = among(columns["leader"], node_ids)
    error = np.where(led, 0, _leader_errors(image, columns, version)).astype(np.int16)
    replicas, isr = columns["replicas"], columns["isr"]
    if version == 0:
        missing = _missing(replicas, node_ids) | _missing(isr, node_ids)
        error[led & missing] = ProtocolError.REPLICA_NOT_AVAILABLE
        replicas = keep(replicas, among(replicas, node_ids))
        isr = keep(isr, among(isr, node_ids))
    return MetadataPartitions(
        error=error,
        partition=columns["partition"],
        leader=np.where(led, columns["leader"], np.int32(NONE)),
        leader_epoch=columns["leader_epoch"],
        replicas=replicas,
        isr=isr,
        offline=keep(columns["replicas"], columns["offline"]),
    )


def _leader_errors(image: ClusterImage, columns: Mapping[str, Column], version: int) -> Int32s:
    """Return int32[n]: the error of each row, should its leader not be reachable."""
    absent = np.int32(ProtocolError.LEADER_NOT_AVAILABLE)
    if version < _LISTENER_NOT_FOUND_SINCE:
        return np.full(len(columns["leader"]), absent)
    registered = image.registered(columns["leader"])
    return np.where(registered, np.int32(ProtocolError.LISTENER_NOT_FOUND), absent)


def _missing(ids: Int32s, node_ids: Int32s) -> Bools:
    found = any_in_row((ids != NONE) & ~among(ids, node_ids))
    return found


def _nothing() -> MetadataPartitions:
    none = np.empty(0, dtype=np.int32)
    lists = np.empty((0, 0), dtype=np.int32)
    return MetadataPartitions(none.astype(np.int16), none, none, none, lists, lists, lists)
