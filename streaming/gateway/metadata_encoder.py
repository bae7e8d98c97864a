"""Encodes Metadata responses from columns, without a Python loop over partitions."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state.matrix import Int32s
from state.topic_ids import NO_TOPIC_ID
from streaming.gateway.nodes import Node
from streaming.gateway.operations import NOT_ASKED
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.primitives import array_length, empty_tags, nullable_string, string
from streaming.wire.row_encoder import BrokerIds, Column, Scalar, encode_rows

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """A topic of the response; its rows are the next `partitions` ones of the columns."""

    name: str | None
    topic_id: bytes = NO_TOPIC_ID
    error: int = 0
    is_internal: bool = False
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class MetadataPartitions:
    """n partitions in the order of their topics; lists of ids are padded with -1 at the end."""

    error: npt.NDArray[np.int16]  # [n]
    partition: Int32s  # [n]
    leader: Int32s  # [n], -1 no leader that can be reached
    leader_epoch: Int32s  # [n]
    replicas: Int32s  # [n, R]
    isr: Int32s  # [n, R]
    offline: Int32s  # [n, R]


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """Everything a Metadata response says; operations are bit fields of `operations`."""

    nodes: Iterable[Node]
    cluster_id: str
    controller_id: int
    topics: Sequence[TopicEntry]
    partitions: MetadataPartitions
    topic_operations: int = NOT_ASKED
    cluster_operations: int = NOT_ASKED


def encode_metadata(version: int, answer: MetadataAnswer) -> bytes:
    """Encode the body of a Metadata response, versions 0-12."""
    flexible = APIS[ApiKey.METADATA].response.is_flexible(version)
    nodes = [_node(node, version, flexible) for node in answer.nodes]
    parts = [_INT32.pack(0) if version >= 3 else b""]  # throttle time
    parts += [array_length(len(nodes), flexible), *nodes]
    if version >= 2:
        parts.append(nullable_string(answer.cluster_id, flexible))
    if version >= 1:
        parts.append(_INT32.pack(answer.controller_id))
    parts += _topics(version, answer, flexible)
    if 8 <= version <= 10:
        parts.append(_INT32.pack(answer.cluster_operations))
    parts.append(empty_tags(flexible))
    return b"".join(parts)


def _node(node: Node, version: int, flexible: bool) -> bytes:
    rack = nullable_string(node.rack, flexible) if version >= 1 else b""
    address = string(node.host, flexible) + _INT32.pack(node.port)
    return _INT32.pack(node.id) + address + rack + empty_tags(flexible)


def _topics(version: int, answer: MetadataAnswer, flexible: bool) -> list[bytes]:
    columns = _columns(version, answer.partitions)
    rows, bounds = encode_rows(columns, len(answer.partitions.partition), flexible)
    closing = _INT32.pack(answer.topic_operations) if version >= 8 else b""
    closing += empty_tags(flexible)
    row_ends = np.cumsum([0, *(topic.partitions for topic in answer.topics)])
    starts = bounds[row_ends].tolist()
    parts = [array_length(len(answer.topics), flexible)]
    for topic, start, end in zip(answer.topics, starts, starts[1:], strict=False):
        parts += [_topic_head(topic, version, flexible), rows[start:end], closing]
    return parts


def _topic_head(topic: TopicEntry, version: int, flexible: bool) -> bytes:
    name = nullable_string(topic.name, flexible)
    topic_id = topic.topic_id if version >= 10 else b""
    internal = bytes([topic.is_internal]) if version >= 1 else b""
    length = array_length(topic.partitions, flexible)
    return _INT16.pack(topic.error) + name + topic_id + internal + length


def _columns(version: int, partitions: MetadataPartitions) -> list[Column]:
    columns: list[Column] = [
        Scalar(partitions.error, ">i2"),
        Scalar(partitions.partition),
        Scalar(partitions.leader),
    ]
    if version >= 7:
        columns.append(Scalar(partitions.leader_epoch))
    columns += [BrokerIds(partitions.replicas), BrokerIds(partitions.isr)]
    if version >= 5:
        columns.append(BrokerIds(partitions.offline))
    return columns
