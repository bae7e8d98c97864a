"""FindCoordinator: the broker that leads a group's or a transactional id's partition."""

from __future__ import annotations

import functools
import struct
from enum import IntEnum

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.nodes import NO_NODE, NO_NODE_ID, Node, Nodes
from streaming.gateway.passing.creation import AutoCreation
from streaming.gateway.ports import ClusterView, PartitionsView
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC, TRANSACTION_TOPIC
from streaming.wire import since
from streaming.wire.schema_codec import Body

_SHARE_SINCE = 6


class _KeyType(IntEnum):
    """org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_TOPIC_OF = {_KeyType.GROUP: GROUP_TOPIC, _KeyType.TRANSACTION: TRANSACTION_TOPIC}


class FindCoordinator:
    """Answers FindCoordinator from the image (KafkaApis.getCoordinator).

    COORDINATOR_NOT_AVAILABLE, which clients retry, when the internal topic, its leader, or a
    current image is not there yet; a missing topic is created by a broker that is asked the same.
    Share groups (KIP-932) have no coordinator in these versions.
    """

    def __init__(
        self,
        view: ClusterView,
        nodes: Nodes,
        creation: AutoCreation,
        announced_topic: str | None = None,
    ) -> None:
        """Take what is known of the cluster and its nodes, who creates topics, and the topic that
        this node is announced as leader of.
        """
        self._announced_topic = announced_topic
        self._view = view
        self._nodes = nodes
        self._creation = creation

    async def handle(self, call: Call) -> Body:
        """Answer for one key, from version 4 on for several."""
        image = self._view.image() if self._view.is_current() else None
        nodes = {} if image is None else self._nodes.on(call.listener, image)
        batched = call.version >= since.FIND_COORDINATOR_MANY_KEYS
        keys: list[str] = call.body["coordinator_keys"] if batched else [call.body["key"]]
        answers = [self._coordinator(call, image, nodes, key) for key in keys]
        topic = topic_of(call)
        if keys and topic and image is not None and topic not in image.topic_ids:
            listener = call.listener.name
            await self._creation.of_coordinators(listener, call.body["key_type"], keys[0])
        if not batched:
            return answers[0]
        return {
            "coordinators": [
                {"key": key, **answer} for key, answer in zip(keys, answers, strict=True)
            ]
        }

    def _coordinator(
        self, call: Call, image: ClusterImage | None, nodes: dict[int, Node], key: str
    ) -> Body:
        topic = topic_of(call)
        node = NO_NODE
        if topic is None:
            share = call.body["key_type"] == _KeyType.SHARE and call.version >= _SHARE_SINCE
            unknown = ProtocolError.INVALID_REQUEST
            error = ProtocolError.COORDINATOR_NOT_AVAILABLE if share else unknown
        else:
            leader = NO_NODE_ID if image is None else leader_of(self._view, topic, key)
            if topic == self._announced_topic and leader != NO_NODE_ID:
                leader = self._nodes.controller_id()
            node = nodes.get(leader, NO_NODE)
            found = node is not NO_NODE
            error = ProtocolError.NONE if found else ProtocolError.COORDINATOR_NOT_AVAILABLE
        return {"error_code": error, "node_id": node.id, "host": node.host, "port": node.port}


def topic_of(call: Call) -> str | None:
    """Return the internal topic whose leaders a FindCoordinator is about, None without one."""
    return _TOPIC_OF.get(call.body["key_type"])


def leader_of(view: PartitionsView, topic: str, key: str) -> int:
    """Return who leads the partition of an internal topic that a key belongs to, NO_NODE_ID if
    nobody does.
    """
    image, count = view.image(), view.partition_count(topic)
    if image is None or count == 0:
        return NO_NODE_ID
    row = image.row_of(topic, coordinator_partition(key, count))
    return NO_NODE_ID if row is None else int(image.columns["leader"][row])


@functools.lru_cache(maxsize=1 << 16)
def coordinator_partition(key: str, count: int) -> int:
    """Return the partition of an internal topic with `count` of them that a group or transactional
    id belongs to (GroupMetadataManager.partitionFor, TransactionStateManager.partitionFor).
    """
    value = java_string_hash(key)
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # Java's Utils.abs: the least int has no positive twin, and counts as 0.
    return 0 if signed == -(1 << 31) else abs(signed) % count


def java_string_hash(text: str) -> int:
    """Return String.hashCode as a number from 0 to 2**32 - 1 (its two's complement)."""
    encoded = text.encode("utf-16-be")
    value = 0
    for (unit,) in struct.iter_unpack(">H", encoded):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value
