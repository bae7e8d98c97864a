"""What ZooKeeper holds at one moment: the demo's witness, which never asks helmstream itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streaming.zk.client import ZkSession
from streaming.zk.multiread import read_many
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    TOPICS_PATH,
    broker_path,
    parse_controller_id,
    parse_epoch,
    parse_partition_states,
    parse_topic,
    partition_state_path,
    topic_path,
)

_SESSION_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition's state znode; leader -1 means that it has none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sighting:
    """Who controls, which brokers are registered (id -> czxid), and every partition's state.

    controller_czxid tells one holding of /controller from the next. A partition whose state znode
    is not there yet is None.
    """

    controller_id: int | None
    controller_czxid: int
    controller_epoch: int
    brokers: Mapping[int, int]
    partitions: Mapping[tuple[str, int], PartitionSeen | None]

    def of_topic(self, topic: str) -> dict[int, PartitionSeen | None]:
        """Return the partitions of one topic."""
        return {number: seen for (name, number), seen in self.partitions.items() if name == topic}

    def led_by(self, broker_id: int) -> int:
        """Return how many partitions a broker leads."""
        return sum(seen is not None and seen.leader == broker_id for seen in self.seen())

    def seen(self) -> list[PartitionSeen | None]:
        """Return the states of all partitions."""
        return list(self.partitions.values())


class Lookout:
    """A ZooKeeper session of its own that only reads; may be shared between threads."""

    def __init__(self, connect: str) -> None:
        """Connect; raises ZooKeeperUnreachable."""
        self._session = ZkSession(connect, _SESSION_TIMEOUT_MS)
        self._session.connect(_SESSION_TIMEOUT_MS)

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def look(self) -> Sighting:
        """Read everything; raises ZooKeeperError."""
        broker_ids = [int(name) for name in self._session.children(BROKER_IDS_PATH) or []]
        topics = self._session.children(TOPICS_PATH) or []
        paths = [CONTROLLER_PATH, CONTROLLER_EPOCH_PATH]
        paths += [broker_path(broker_id) for broker_id in broker_ids]
        paths += [topic_path(topic) for topic in topics]
        read = read_many(self._session, paths)
        znodes = [read.znode(row) for row in range(len(paths))]
        controller, epoch, *others = znodes
        registered = zip(broker_ids, others, strict=False)
        assignments = zip(topics, others[len(broker_ids) :], strict=True)
        return Sighting(
            controller_id=None if controller is None else parse_controller_id(controller.data),
            controller_czxid=-1 if controller is None else controller.czxid,
            controller_epoch=0 if epoch is None else parse_epoch(epoch.data),
            brokers={id_: znode.czxid for id_, znode in registered if znode is not None},
            partitions=self._partitions(assignments),
        )

    def _partitions(
        self, topics: Iterable[tuple[str, ZNode | None]]
    ) -> dict[tuple[str, int], PartitionSeen | None]:
        keys = [
            (topic, partition)
            for topic, znode in topics
            if znode is not None
            for partition in sorted(parse_topic(znode.data).replicas)
        ]
        if not keys:
            return {}
        read = read_many(self._session, [partition_state_path(*key) for key in keys])
        states = parse_partition_states(read.data, read.version)
        return {
            key: PartitionSeen(
                int(states.leader[row]),
                int(states.leader_epoch[row]),
                tuple(member for member in states.isr[row].tolist() if member >= 0),
            )
            if states.present[row]
            else None
            for row, key in enumerate(keys)
        }
