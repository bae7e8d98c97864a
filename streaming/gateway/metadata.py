"""Metadata: the nodes a client can reach, and topics with their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

import numpy as np

from state.matrix import Rows
from state.partitions.creation import is_legal_name
from state.protocol_errors import ProtocolError
from state.topic_ids import NO_TOPIC_ID, topic_id_from_text, topic_id_to_text
from streaming.gateway.calls import Call
from streaming.gateway.metadata_encoder import MetadataAnswer, TopicEntry, encode_metadata
from streaming.gateway.metadata_partitions import visible_partitions
from streaming.gateway.nodes import NO_NODE_ID, Nodes
from streaming.gateway.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from streaming.gateway.passing.creation import AutoCreation
from streaming.gateway.ports import ClusterView
from streaming.image.announced_leader import announced_columns
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import INTERNAL_TOPICS
from streaming.wire import since
from streaming.wire.schema_codec import Body

_IDS_SINCE = 12


class Metadata:
    """Answers Metadata from the image (KafkaApis.handleTopicMetadataRequest).

    Topics that are not there and may be created by being asked for are left to a broker, which
    creates them or not as it is set up.

    While no node is known, before the first image, the connection is closed: clients ask another
    node then. librdkafka (seen with 2.16) forgets every node that an answer does not name, the ones
    it began with too, and may never ask again after one that names none, as a broker gives that
    just started; after one that names this node alone, all clients would forget the brokers.
    """

    def __init__(
        self,
        view: ClusterView,
        nodes: Nodes,
        creation: AutoCreation,
        announced_topic: str | None = None,
    ) -> None:
        """Take what is known of the cluster and its nodes, and who creates topics. announced_topic:
        of which brokers are told that this node leads it, None for none.
        """
        self._announced_topic = announced_topic
        self._view = view
        self._nodes = nodes
        self._creation = creation

    async def handle(self, call: Call) -> bytes:
        """Answer for the topics asked for: all, by name, or (from version 12) by id."""
        asked = asked_topics(call.body, call.version)
        created = await self._create_missing(call, asked or ())
        image, nodes = self._nodes.reachable(call.listener)
        rows: slice | Rows
        if asked is None:
            topics, rows = _all_topics(image)
        else:
            found, rows = _named_topics(image, asked, call.version)
            topics = [_told(topic, created) for topic in found]
        controller_id = self._nodes.controller_id()
        announced = None if controller_id == NO_NODE_ID else self._announced_topic
        columns = announced_columns(image, rows, announced, controller_id)
        topic_operations = call.body["include_topic_authorized_operations"]
        cluster_operations = call.body["include_cluster_authorized_operations"]
        answer = MetadataAnswer(
            nodes=nodes.values(),
            cluster_id=self._view.cluster_id,
            controller_id=controller_id,
            topics=topics,
            partitions=visible_partitions(image, columns, nodes.keys(), call.version),
            topic_operations=TOPIC_OPERATIONS if topic_operations else NOT_ASKED,
            cluster_operations=CLUSTER_OPERATIONS if cluster_operations else NOT_ASKED,
        )
        return encode_metadata(call.version, answer)

    async def _create_missing(self, call: Call, asked: Iterable[Body]) -> Mapping[str, int]:
        """Return what a broker says of missing topics: an error code by name."""
        image = self._view.image()
        if image is None or not call.body["allow_auto_topic_creation"]:
            return {}
        names = [topic["name"] for topic in asked if topic["name"] is not None]
        missing = [
            name
            for name in dict.fromkeys(names)
            if is_legal_name(name) and name not in image.topic_ids and name not in image.deleting
        ]
        if not missing:
            return {}
        return await self._creation.of_topics(call.listener.name, missing)


def _told(topic: TopicEntry, created: Mapping[str, int]) -> TopicEntry:
    error = created.get(topic.name or "")
    if error is None or topic.error != ProtocolError.UNKNOWN_TOPIC_OR_PARTITION:
        return topic
    return replace(topic, error=error)


def asked_topics(body: Body, version: int) -> list[Body] | None:
    """Return the topics that a Metadata request asks for, None for all."""
    topics: list[Body] | None = body["topics"]
    return None if version < since.METADATA_NO_TOPICS and not topics else topics


def _no_rows() -> Rows:
    return np.empty(0, dtype=np.intp)


def _all_topics(image: ClusterImage) -> tuple[list[TopicEntry], slice]:
    index, names = image.topic_of_rows()
    counts = np.bincount(index, minlength=len(names)).tolist()
    topics = [_entry(image, name, count) for name, count in zip(names, counts, strict=True)]
    return topics, slice(None)


def _named_topics(
    image: ClusterImage, asked: list[Body], version: int
) -> tuple[list[TopicEntry], Rows]:
    if any(_is_invalid(topic, version) for topic in asked):
        return [_refused(topic, ProtocolError.INVALID_REQUEST) for topic in asked], _no_rows()
    topic_ids = dict.fromkeys(topic["topic_id"] for topic in asked if topic["topic_id"])
    if topic_ids:
        found = [_by_id(image, topic_id) for topic_id in topic_ids]
    else:
        found = [_by_name(image, name) for name in dict.fromkeys(t["name"] for t in asked)]
    return [topic for topic, _ in found], _rows(rows for _, rows in found)


def _rows(slices: Iterable[slice]) -> Rows:
    ranges = [np.arange(rows.start, rows.stop, dtype=np.intp) for rows in slices]
    return np.concatenate([_no_rows(), *ranges])


def _is_invalid(topic: Body, version: int) -> bool:
    """Return whether a version before topic ids has one, or no name, or if neither is given."""
    if topic["name"] is None:
        return version < _IDS_SINCE or topic["topic_id"] is None
    return version < _IDS_SINCE and topic["topic_id"] is not None


def _refused(topic: Body, error: int) -> TopicEntry:
    topic_id: UUID | None = topic["topic_id"]
    name: str | None = topic["name"]
    if topic_id is None:
        return TopicEntry(name or "", error=error)
    return TopicEntry(name, topic_id.bytes, error)


def _by_id(image: ClusterImage, topic_id: UUID) -> tuple[TopicEntry, slice]:
    name = image.topic_name(topic_id_to_text(topic_id.bytes) or "")
    if name is None:
        unknown = TopicEntry(None, topic_id.bytes, ProtocolError.UNKNOWN_TOPIC_ID)
        return unknown, slice(0, 0)
    return _by_name(image, name)


def _by_name(image: ClusterImage, name: str) -> tuple[TopicEntry, slice]:
    rows = image.rows_of(name)
    if rows.start == rows.stop:
        unknown = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
        error = unknown if is_legal_name(name) else ProtocolError.INVALID_TOPIC_EXCEPTION
        return TopicEntry(name, error=error, is_internal=name in INTERNAL_TOPICS), rows
    return _entry(image, name, rows.stop - rows.start), rows


def _entry(image: ClusterImage, name: str, partitions: int) -> TopicEntry:
    text = image.topic_ids[name]
    return TopicEntry(
        name,
        NO_TOPIC_ID if text is None else topic_id_from_text(text),
        is_internal=name in INTERNAL_TOPICS,
        partitions=partitions,
    )
