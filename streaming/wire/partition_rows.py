"""What the wide controller RPCs carry: partitions as columns, brokers as small objects."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.wire.endpoints import Endpoint

_INT64 = struct.Struct(">q")
_PER_TOPIC = frozenset({"topic_names", "topic_ids"})


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """n partitions of T topics, one array per field; rows of a topic stand together.

    Arrays of broker ids are padded with -1 at the end of each row. An all-zero topic id means the
    topic has none. Topics without a row are not sent.
    """

    topic_names: list[str]
    topic_ids: NDArray[np.uint8]  # [T, 16]
    topic_index: NDArray[np.int32]  # [n], never decreasing, into topic_names and topic_ids
    partition: NDArray[np.int32]  # [n]
    controller_epoch: NDArray[np.int32]  # [n]
    leader: NDArray[np.int32]  # [n], -1 no leader, -2 the partition is being deleted
    leader_epoch: NDArray[np.int32]  # [n]
    isr: NDArray[np.int32]  # [n, R]
    partition_epoch: NDArray[np.int32]  # [n], version of the state znode
    replicas: NDArray[np.int32]  # [n, R]
    offline_replicas: NDArray[np.int32]  # [n, A]
    adding: NDArray[np.int32]  # [n, A]
    removing: NDArray[np.int32]  # [n, A]
    is_new: NDArray[np.bool_]  # [n]
    leader_recovery_state: NDArray[np.int8]  # [n]
    delete_partition: NDArray[np.bool_]  # [n], StopReplica only

    def __len__(self) -> int:
        return len(self.partition)

    def select(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> PartitionRows:
        """Return some of the rows (a mask, or ascending indices) with the same topic table."""
        columns: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            columns[field.name] = column if field.name in _PER_TOPIC else column[rows]
        return PartitionRows(**columns)


@dataclass(frozen=True, slots=True)
class LiveLeader:
    """A leader's address on the inter-broker listener, as LeaderAndIsr names it."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A live broker as UpdateMetadata describes it."""

    id: int
    rack: str | None
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A request body that brokers share: it differs between them in the broker epoch only.

    broker_epoch_position is None in versions without the field.
    """

    body: bytes
    broker_epoch_position: int | None

    def parts(self, broker_epoch: int) -> list[memoryview]:
        """Return the body addressed to the broker whose registration has this czxid, piece by
        piece: without a copy of what brokers share.
        """
        start = self.broker_epoch_position
        view = memoryview(self.body)
        if start is None:
            return [view]
        epoch = memoryview(_INT64.pack(broker_epoch))
        return [view[:start], epoch, view[start + _INT64.size :]]
