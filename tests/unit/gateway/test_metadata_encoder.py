"""The column-wise Metadata response is byte for byte what the schema codec writes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.matrix import pad_rows, unpad
from streaming.gateway.metadata_encoder import (
    MetadataAnswer,
    MetadataPartitions,
    TopicEntry,
    encode_metadata,
)
from streaming.gateway.nodes import Node
from streaming.wire.apis import APIS, ApiKey

IDS = st.lists(st.integers(0, 2**31 - 1), max_size=4)
PARTITION = st.tuples(
    st.sampled_from([0, 5, 9, 72]), st.integers(0, 300), st.integers(-1, 9), IDS, IDS, IDS
)
TOPIC = st.tuples(
    st.text(st.characters(codec="utf-8"), max_size=140),
    st.binary(min_size=16, max_size=16),
    st.sampled_from([0, 3, 100]),
    st.booleans(),
    st.lists(PARTITION, max_size=5),
)
NODE = st.builds(
    Node,
    st.integers(0, 2000),
    st.text(st.characters(codec="ascii"), max_size=20),
    st.integers(0, 65535),
    st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
)


def columns(rows: list[Any]) -> MetadataPartitions:
    error, partition, leader, replicas, isr, offline = (
        list(map(list, zip(*rows, strict=True))) if rows else [[]] * 6
    )
    return MetadataPartitions(
        np.array(error, np.int16),
        np.array(partition, np.int32),
        np.array(leader, np.int32),
        np.array(leader, np.int32) + 7,
        *map(pad_rows, (replicas, isr, offline)),
    )


def codec_body(answer: MetadataAnswer) -> dict[str, Any]:
    topics, start, table = [], 0, answer.partitions
    for entry in answer.topics:
        rows = range(start, start := start + entry.partitions)
        topics.append(
            {
                "error_code": entry.error,
                "name": entry.name,
                "topic_id": UUID(bytes=entry.topic_id),
                "is_internal": entry.is_internal,
                "partitions": [
                    {
                        "error_code": int(table.error[row]),
                        "partition_index": int(table.partition[row]),
                        "leader_id": int(table.leader[row]),
                        "leader_epoch": int(table.leader_epoch[row]),
                        "replica_nodes": unpad(table.replicas[row]),
                        "isr_nodes": unpad(table.isr[row]),
                        "offline_replicas": unpad(table.offline[row]),
                    }
                    for row in rows
                ],
                "topic_authorized_operations": answer.topic_operations,
            }
        )
    return {
        "brokers": [
            {"node_id": n.id, "host": n.host, "port": n.port, "rack": n.rack} for n in answer.nodes
        ],
        "cluster_id": answer.cluster_id,
        "controller_id": answer.controller_id,
        "topics": topics,
        "cluster_authorized_operations": answer.cluster_operations,
    }


@pytest.mark.parametrize("version", range(13))
@given(nodes=st.lists(NODE, max_size=3), topics=st.lists(TOPIC, max_size=4))
def test_bytes_are_those_of_the_codec(version: int, nodes: list[Node], topics: list[Any]) -> None:
    answer = MetadataAnswer(
        nodes=nodes,
        cluster_id="cluster",
        controller_id=1000,
        topics=[TopicEntry(*topic[:4], partitions=len(topic[4])) for topic in topics],
        partitions=columns([row for topic in topics for row in topic[4]]),
        topic_operations=0b1000,
        cluster_operations=0b10000,
    )
    expected = APIS[ApiKey.METADATA].response.encode(version, codec_body(answer))
    assert encode_metadata(version, answer) == expected
