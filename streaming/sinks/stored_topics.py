"""What ZooKeeper holds of topics, where the image cannot say whether a removal still holds."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state.matrix import unpad
from streaming.sinks.independent_stops import may_go
from streaming.zk.multiread import read_each, read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import TopicZNode, parse_partition_states
from streaming.zk.znodes.paths import partition_state_path, topic_path
from streaming.zk.znodes.topic import parse_topic

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic's znode, and leader and ISR by partition; those that cannot be read are left out."""

    znode: TopicZNode
    states: Mapping[int, tuple[int, Sequence[int]]]

    def may_lose(self, topic_id: str | None, partition: int, broker: int) -> bool:
        """Return whether this is the topic with that id, and its partition neither lists nor needs
        the broker.
        """
        listed = self.znode.replicas.get(partition)
        state = self.states.get(partition)
        if self.znode.topic_id != topic_id or listed is None or state is None:
            return False
        return broker not in listed and may_go(broker, listed, *state)


StoredTopics = Mapping[str, StoredTopic | None]
"""Topics by name, None for one that is gone; one that cannot be read is left out."""


def read_topics(session: ZkReader, names: Sequence[str]) -> StoredTopics:
    """Return what there is of topics now. Raises SessionLost, ZooKeeperUnreachable."""
    session.sync()  # the last job may have written at another server
    paths = {topic_path(name): name for name in names}
    found: dict[str, StoredTopic | None] = {}
    for path, data in _readable(session, [*paths]).items():
        try:
            znode = None if data is None else parse_topic(data)
        except ValueError as error:
            _pass_over(path, error)
            continue
        states = _states(session, paths[path], [*znode.replicas]) if znode else {}
        found[paths[path]] = StoredTopic(znode, states) if znode else None
    return found


def names_taken(session: ZkReader, names: Sequence[str]) -> set[str]:
    """Return those of these names that topics have now, legible or not. Raises as `read_topics`."""
    paths = {topic_path(name): name for name in names}
    free = {path for path, data in _readable(session, [*paths]).items() if data is None}
    return {name for path, name in paths.items() if path not in free}


def _states(
    session: ZkReader, topic: str, partitions: Sequence[int]
) -> dict[int, tuple[int, Sequence[int]]]:
    paths = {partition_state_path(topic, one): one for one in partitions}
    read = _readable(session, [*paths])
    states = parse_partition_states([*read.values()], [0] * len(read))
    return {
        paths[path]: (int(states.leader[row]), unpad(states.isr[row]))
        for row, path in enumerate(read)
        if states.present[row]
    }


def _readable(session: ZkReader, paths: Sequence[str]) -> dict[str, bytes | None]:
    """Return the data of znodes, None where there is none; without those that may not be read."""
    return read_each(paths, lambda some: read_many(session, some).data, _pass_over)


def _pass_over(path: str, error: Exception) -> None:
    logger.error("%s is passed over: %s", path, error)
