"""Requests that tools leave under /admin: preferred elections and reassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from state.json_values import int32_tuple
from state.topic_partition import TopicPartition
from streaming.zk.znodes.topic import partition_number, topic_name


def parse_preferred_election(data: bytes) -> list[TopicPartition]:
    """Read /admin/preferred_replica_election; raises ValueError naming what is wrong."""
    try:
        listed = orjson.loads(data)["partitions"]
        return [_partition(one) for one in listed]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"broken znode: {error!r} in {data[:200]!r}") from error


def reassignment_bytes(targets: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    """Write /admin/reassign_partitions, in the order given (ReassignPartitionsZNode.encode)."""
    listed = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in targets.items()
    ]
    return orjson.dumps({"version": 1, "partitions": listed})


def parse_reassignment(data: bytes) -> dict[TopicPartition, list[int]]:
    """Read /admin/reassign_partitions; raises ValueError naming what is wrong."""
    try:
        return {
            _partition(one): list(int32_tuple(one["replicas"]))
            for one in orjson.loads(data)["partitions"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"broken znode: {error!r} in {data[:200]!r}") from error


def _partition(one: Any) -> TopicPartition:
    return topic_name(one["topic"]), partition_number(one["partition"])
