"""A live cluster made by hand in a real ZooKeeper, and a reader that looks when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming.settings_loader import load_settings
from streaming.shadow.looks import Look
from streaming.shadow.reader import ClusterReader
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    TOPICS_PATH,
    BrokerZNode,
    TopicZNode,
    broker_bytes,
    broker_path,
    controller_bytes,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_bytes,
    topic_path,
)
from streaming.zk.znodes.partition_state import partition_state_bytes
from tests.e2e.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS


def state(
    isr: list[int], leader: int = 1, leader_epoch: int = 0, controller_epoch: int = 1
) -> bytes:
    return partition_state_bytes([leader], [leader_epoch], [isr], controller_epoch, [0])[0]


@contextmanager
def live_cluster(connect: str) -> Iterator[ZkSession]:
    """A cluster without brokers: topic t, partition 0 on 1 and 2, a controller that stays."""
    with ZkSession(connect, SESSION_TIMEOUT_MS) as session:
        for path in (BROKER_IDS_PATH, TOPICS_PATH, DELETE_TOPICS_PATH):
            session.ensure_path(path)
        session.create(CONTROLLER_EPOCH_PATH, b"1")
        session.create(CONTROLLER_PATH, controller_bytes(1, 1), ephemeral=True)
        create_topic(session, "t", [1, 2], state([1, 2]))
        yield session


def register(session: ZkSession, *brokers: int) -> None:
    """Register brokers that nobody can reach."""
    end = Endpoint(
        listener="INTERNAL", host="h", port=1, security_protocol=SecurityProtocol.PLAINTEXT
    )
    for id_ in brokers:
        data = broker_bytes(BrokerZNode([end]), 1)
        session.create(broker_path(id_), data, ephemeral=True)


def create_topic(session: ZkSession, name: str, replicas: list[int], data: bytes) -> None:
    """Create a topic with partition 0 and its state, which then has version 0."""
    session.create(topic_path(name), topic_bytes(TopicZNode({0: replicas})))
    session.ensure_path(partition_path(name, 0))
    session.create(partition_state_path(name, 0), data)


def delete_topic(session: ZkSession, name: str) -> None:
    """Delete such a topic, its state first."""
    for path in (partition_state_path(name, 0), partition_path(name, 0), partitions_path(name)):
        session.delete(path)
    session.delete(topic_path(name))


def reader_of(session: ZkReader, *settings: str) -> ClusterReader:
    return ClusterReader(session, load_settings((), ["mode=shadow", *settings], {}), lambda: None)


def wait_until_dirty(reader: ClusterReader, *paths: str) -> None:
    """Wait until the next look will read these znodes again."""

    def dirty() -> bool:
        marked = reader.dirty.drain()
        reader.dirty.mark(marked)
        return marked.paths.issuperset(paths)

    wait_for(f"watches of {paths}", dirty)


def look_until(reader: ClusterReader, found: Callable[[Look], object]) -> Look:
    """Look again and again, until a look has what is looked for; return that one."""
    return wait_for("a look", lambda: look if found(look := reader.look()) else None)
