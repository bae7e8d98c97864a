"""What a tree says about topics, partitions and open requests: what steps are chosen from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from streaming.zk.znodes import (
    DELETE_TOPICS_PATH,
    TOPICS_PATH,
    TopicZNode,
    parse_topic,
    partition_state_path,
)
from tests.differential.cluster import Tree

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Model:
    """topics by name; states by partition, of those that have had a leader; deleting: marked
    topics; admin: the requests that are open.
    """

    topics: dict[str, TopicZNode]
    states: dict[Partition, dict[str, Any]]
    deleting: frozenset[str]
    admin: frozenset[str]

    @classmethod
    def of(cls, tree: Tree) -> Model:
        """Read a tree."""
        topics = {
            path.removeprefix(f"{TOPICS_PATH}/"): parse_topic(data)
            for path, (data, _) in tree.items()
            if path.startswith(f"{TOPICS_PATH}/") and path.count("/") == 3
        }
        states = {
            (name, partition): orjson.loads(tree[path][0])
            for name, topic in topics.items()
            for partition in topic.replicas
            if (path := partition_state_path(name, partition)) in tree
        }
        marked = {
            path.removeprefix(f"{DELETE_TOPICS_PATH}/")
            for path in tree
            if path.startswith(f"{DELETE_TOPICS_PATH}/")
        }
        admin = {path for path in tree if path.count("/") == 2 and path.startswith("/admin/")}
        return cls(topics, states, frozenset(marked), frozenset(admin - {DELETE_TOPICS_PATH}))

    def partitions(self) -> list[Partition]:
        """Return the partitions of topics that are not being deleted."""
        return [
            (name, partition)
            for name, topic in sorted(self.topics.items())
            if name not in self.deleting
            for partition in topic.replicas
        ]

    def moving(self, partition: Partition) -> bool:
        """Return whether replicas of a partition come or go."""
        name, number = partition
        topic = self.topics[name]
        return bool(topic.adding.get(number) or topic.removing.get(number))

    def origin(self, partition: Partition) -> list[int]:
        """Return the replicas a partition had before it began to move."""
        name, number = partition
        topic = self.topics[name]
        adding = topic.adding.get(number, ())
        return [id_ for id_ in topic.replicas[number] if id_ not in adding]

    def moving_topics(self) -> set[str]:
        """Return the topics with a partition that moves."""
        return {name for name, number in self.partitions() if self.moving((name, number))}
