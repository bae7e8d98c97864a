"""Reading a live cluster goes on after ZooKeeper was away."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.log.api import NewRecord
from streaming.settings_loader import load_settings
from streaming.shadow.looks import Look
from streaming.shadow.reader import ClusterReader
from streaming.shadow.shadow import Watcher
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    TopicZNode,
    controller_bytes,
    partition_state_path,
    topic_bytes,
    topic_path,
)
from streaming.zk.znodes.partition_state import partition_state_bytes
from tests.e2e.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.shadow.support import live_cluster, state


@pytest.fixture
def writer(zookeeper_server: EmbeddedZooKeeper) -> Iterator[ZkSession]:
    with live_cluster(zookeeper_server.connect_string) as session:
        yield session


def next_look(watcher: Watcher, looks: list[Look]) -> Look | None:
    while not watcher.looks.empty():
        looks.append(watcher.looks.get())
    return looks.pop(0) if looks else None


def next_inputs(watcher: Watcher, looks: list[Look]) -> Sequence[NewRecord]:
    """Return what the next look saw happen: one may see the same state once more, or nothing."""
    look = next_look(watcher, looks)
    return () if look is None else look.inputs


def test_a_server_that_restarts(zookeeper_server: EmbeddedZooKeeper, writer: ZkSession) -> None:
    """What changed meanwhile is seen, without a load: the controller is the same."""
    settings = load_settings((), ["mode=shadow"], {})
    stopped = threading.Event()
    looks: list[Look] = []
    with ZkReader(zookeeper_server.connect_string, SESSION_TIMEOUT_MS) as session:
        watcher = Watcher(session, lambda wake: ClusterReader(session, settings, wake), stopped)
        watcher.start()
        first = wait_for("the load", lambda: next_look(watcher, looks))
        assert (first.load.epoch, first.load.first) == (1, True)
        assert [one.isr for one in first.load.held.values()] == [(1, 2)]

        zookeeper_server.kill()
        zookeeper_server.start()
        writer.wait_until_held(60)
        writer.set(partition_state_path("t", 0), state([1]))
        look = wait_for("the change", lambda: next_look(watcher, looks))
        assert look.load is None
        assert [one.isr for one in look.states.values()] == [(1,)]

        writer.create(topic_path("u"), topic_bytes(TopicZNode({0: [1]})))
        look = wait_for("a topic", lambda: next_look(watcher, looks))
        assert [one.kind for one in look.inputs] == ["topic_observed"]
        assert look.states == {}, "states are results, however early they are there"
        created = partition_state_path("u", 0)
        writer.ensure_path(created.rsplit("/", 1)[0])
        writer.create(created, state([1]))
        look = wait_for("its state", lambda: next_look(watcher, looks))
        assert set(look.states) == {("u", 0)}

        writer.delete(CONTROLLER_PATH)
        inputs = wait_for("the end of a term", lambda: next_inputs(watcher, looks))
        assert [one.kind for one in inputs] == ["controller_resigned"]
        writer.set(CONTROLLER_EPOCH_PATH, b"2")
        newer = partition_state_bytes([1], [1], [[1]], 2, [0])[0]
        writer.set(partition_state_path("t", 0), newer)
        writer.create(CONTROLLER_PATH, controller_bytes(2, 1))
        look = wait_for("the next one", lambda: next_look(watcher, looks))
        assert (look.load.epoch, look.load.first) == (2, False)
        assert look.load.held["t", 0].leader_epoch == 0, "as it was before the new one wrote"
        assert look.states["t", 0].leader_epoch == 1
        stopped.set()
        watcher.stop()
    assert watcher.failure is None
