"""The three wide controller RPCs, encoded from columns: UpdateMetadata, LeaderAndIsr, StopReplica.

Everything about them that depends on the version is here. Type stays 0 and isKRaftController
false: both matter only while a cluster migrates to KRaft (KIP-866).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.endpoints import SecurityProtocol
from streaming.wire.partition_rows import BrokerNode, EncodedBody, LiveLeader, PartitionRows
from streaming.wire.primitives import array_length, empty_tags, nullable_string, string
from streaming.wire.row_encoder import (
    ArrayFormat,
    BrokerIds,
    Column,
    Scalar,
    encode_partition_array,
)

__all__ = [
    "BrokerNode",
    "EncodedBody",
    "LiveLeader",
    "PartitionRows",
    "encode_leader_and_isr",
    "encode_stop_replica",
    "encode_update_metadata",
]

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


def encode_update_metadata(
    version: int,
    *,
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    rows: PartitionRows,
    live_brokers: Sequence[BrokerNode],
) -> EncodedBody:
    """Encode an UpdateMetadata body, versions 0-8.

    live_brokers replaces the receiver's list. Raises ValueError for other versions, and in
    version 0 for a broker without a PLAINTEXT endpoint, the only kind that version can tell.
    """
    flexible = _is_flexible(ApiKey.UPDATE_METADATA, version)
    head, position = _head(
        controller_id, controller_epoch, broker_epoch, kraft=version >= 8, epoch=version >= 5
    )
    columns = _state_columns(rows)
    if version >= 4:
        columns.append(BrokerIds(rows.offline_replicas))
    array_format = ArrayFormat(version >= 5, flexible, version >= 7, flexible)
    parts: list[bytes | bytearray] = [head, encode_partition_array(rows, columns, array_format)]
    parts.append(array_length(len(live_brokers), flexible))
    parts += [_live_broker(broker, version, flexible) for broker in live_brokers]
    parts.append(empty_tags(flexible))
    return EncodedBody(b"".join(parts), position)


def encode_leader_and_isr(
    version: int,
    *,
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    rows: PartitionRows,
    live_leaders: Sequence[LiveLeader],
) -> EncodedBody:
    """Encode a LeaderAndIsr body, versions 0-7; ValueError for others."""
    flexible = _is_flexible(ApiKey.LEADER_AND_ISR, version)
    head, position = _head(
        controller_id, controller_epoch, broker_epoch, kraft=version >= 7, epoch=version >= 2
    )
    columns = _state_columns(rows)
    if version >= 3:
        columns += [BrokerIds(rows.adding), BrokerIds(rows.removing)]
    if version >= 1:
        columns.append(Scalar(rows.is_new, "?"))
    if version >= 6:
        columns.append(Scalar(rows.leader_recovery_state, "i1"))
    array_format = ArrayFormat(version >= 2, flexible, version >= 5, flexible)
    parts: list[bytes | bytearray] = [head, b"\x00" if version >= 5 else b""]  # Type
    parts.append(encode_partition_array(rows, columns, array_format))
    parts.append(array_length(len(live_leaders), flexible))
    parts += [_live_leader(leader, flexible) for leader in live_leaders]
    parts.append(empty_tags(flexible))
    return EncodedBody(b"".join(parts), position)


def encode_stop_replica(
    version: int,
    *,
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    rows: PartitionRows,
) -> EncodedBody:
    """Encode a StopReplica body, versions 0-4.

    Versions 0-2 have one delete flag for all partitions: ValueError when rows mix it. leader_epoch
    is -2 where the partition is deleted (LeaderAndIsr.EpochDuringDelete, KIP-570).
    """
    flexible = _is_flexible(ApiKey.STOP_REPLICA, version)
    head, position = _head(
        controller_id, controller_epoch, broker_epoch, kraft=version >= 4, epoch=version >= 1
    )
    columns: list[Column] = [Scalar(rows.partition)]
    delete_flag = b""
    if version >= 3:
        columns += [Scalar(rows.leader_epoch), Scalar(rows.delete_partition, "?")]
    else:
        delete_flag = bytes([_common_delete_flag(version, rows)])
    # Below 3 the elements of a topic's array are plain integers, which carry no tagged fields.
    array_format = ArrayFormat(version >= 1, flexible, False, flexible and version >= 3)
    array = encode_partition_array(rows, columns, array_format)
    return EncodedBody(head + delete_flag + array + empty_tags(flexible), position)


def _is_flexible(api_key: ApiKey, version: int) -> bool:
    api = APIS[api_key]
    if not api.min_version <= version <= api.max_version:
        raise ValueError(
            f"{api.name} version {version}, allowed {api.min_version} to {api.max_version}"
        )
    return api.request.is_flexible(version)


def _head(
    controller_id: int, controller_epoch: int, broker_epoch: int, *, kraft: bool, epoch: bool
) -> tuple[bytes, int | None]:
    """Return the leading fields and where in them the broker epoch stands."""
    head = _INT32.pack(controller_id) + (b"\x00" if kraft else b"") + _INT32.pack(controller_epoch)
    return (head + _INT64.pack(broker_epoch), len(head)) if epoch else (head, None)


def _state_columns(rows: PartitionRows) -> list[Column]:
    return [
        Scalar(rows.partition),
        Scalar(rows.controller_epoch),
        Scalar(rows.leader),
        Scalar(rows.leader_epoch),
        BrokerIds(rows.isr),
        Scalar(rows.partition_epoch),
        BrokerIds(rows.replicas),
    ]


def _live_broker(broker: BrokerNode, version: int, flexible: bool) -> bytes:
    if version == 0:
        return _INT32.pack(broker.id) + _only_address(broker)
    parts = [_INT32.pack(broker.id), array_length(len(broker.endpoints), flexible)]
    for endpoint in broker.endpoints:
        parts += [_INT32.pack(endpoint.port), string(endpoint.host, flexible)]
        if version >= 3:
            parts.append(string(endpoint.listener, flexible))
        parts += [_INT16.pack(endpoint.security_protocol), empty_tags(flexible)]
    if version >= 2:
        parts.append(nullable_string(broker.rack, flexible))
    parts.append(empty_tags(flexible))
    return b"".join(parts)


def _only_address(broker: BrokerNode) -> bytes:
    for endpoint in broker.endpoints:
        if endpoint.security_protocol is SecurityProtocol.PLAINTEXT:
            return string(endpoint.host, False) + _INT32.pack(endpoint.port)
    raise ValueError(f"broker {broker.id} has no PLAINTEXT endpoint for UpdateMetadata version 0")


def _live_leader(leader: LiveLeader, flexible: bool) -> bytes:
    return b"".join(
        (
            _INT32.pack(leader.id),
            string(leader.host, flexible),
            _INT32.pack(leader.port),
            empty_tags(flexible),
        )
    )


def _common_delete_flag(version: int, rows: PartitionRows) -> bool:
    flags = np.unique(rows.delete_partition)
    if len(flags) > 1:
        raise ValueError(f"StopReplica version {version} cannot mix deleted and kept partitions")
    return bool(flags.any())
