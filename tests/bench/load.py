"""Writes topics and partition states into ZooKeeper, as a controller before us would have left
them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from state.topic_ids import topic_id_to_text
from streaming.zk.claim import ControllerClaim, claim_controller, resign_controller
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Create
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import (
    TopicZNode,
    partition_path,
    partition_state_bytes,
    partition_state_path,
    partitions_path,
    topic_bytes,
    topic_path,
)

REPLICATION_FACTOR = 3
PARTITIONS_PER_TOPIC = 50
_BUILDER_ID = 999


def topic_name(topic: int) -> str:
    return f"topic-{topic:05d}"


def topic_id(first: int) -> uuid.UUID:
    """Return the id of the topic that begins with a partition, counted over all topics."""
    return uuid.UUID(int=first + 1)


def round_robin(partitions: int, brokers: int) -> NDArray[np.int64]:
    """Return the replicas of all partitions, int64[n, 3]; the first of each leads."""
    row = np.arange(partitions)
    return (row[:, None] + np.arange(REPLICATION_FACTOR)) % brokers + 1


def state_paths(partitions: int) -> list[str]:
    return [
        partition_state_path(topic_name(row // PARTITIONS_PER_TOPIC), row % PARTITIONS_PER_TOPIC)
        for row in range(partitions)
    ]


def topics(replicas: NDArray[np.int64]) -> Iterator[tuple[int, str, bytes, int]]:
    """Yield (first row, name, content of the topic's znode, partitions) of each topic."""
    for first in range(0, len(replicas), PARTITIONS_PER_TOPIC):
        lists = replicas[first : first + PARTITIONS_PER_TOPIC].tolist()
        znode = TopicZNode(dict(enumerate(lists)), topic_id_to_text(topic_id(first).bytes))
        yield first, topic_name(first // PARTITIONS_PER_TOPIC), topic_bytes(znode), len(lists)


def create_topics(session: ZkSession, partitions: int, brokers: int) -> list[str]:
    """Create topics and states, all led by their first replica; return the state paths."""
    replicas = round_robin(partitions, brokers)
    write_topics(
        session,
        (
            (topic, znode, replicas[first : first + count])
            for first, topic, znode, count in topics(replicas)
        ),
    )
    return state_paths(partitions)


def write_topics(session: ZkSession, named: Iterable[tuple[str, bytes, NDArray[np.int64]]]) -> None:
    """Create topics (name, content of its znode, replicas int64[n, r]) as their controller, led by
    the first replicas.
    """
    claim = claim_controller(session, _BUILDER_ID, steal=True)
    assert isinstance(claim, ControllerClaim)
    session.ensure_path("/brokers/topics")
    ops = []
    for topic, znode, replicas in named:
        none = np.zeros(len(replicas))
        states = partition_state_bytes(
            replicas[:, 0], none, replicas, claim.epoch, none.astype(int)
        )
        ops += [Create(topic_path(topic), znode), Create(partitions_path(topic))]
        for number, state in enumerate(states):
            ops += [
                Create(partition_path(topic, number)),
                Create(partition_state_path(topic, number), state),
            ]
    outcomes = FencedWriter(session, claim.epoch_zk_version, WriteLimits()).write(ops)
    assert {one.kind for one in outcomes} == {"written"}
    resign_controller(session, claim)
