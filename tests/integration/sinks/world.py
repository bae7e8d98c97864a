"""Everything around a job without Spark: ZooKeeper, stub brokers, a front with a recorded log."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from state.cluster.authority import LEADER_REBALANCE_TIMER
from state.cluster.machine import FIRST_REBALANCE_DELAY_MS
from state.step import Machine
from streaming.image.restore import image_of
from streaming.log.embedded import EmbeddedLogReader
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.fixtures.fake_front import FakeFront
from tests.fixtures.story import Story
from tests.fixtures.stub_brokers import StubBrokers
from tests.integration.sinks.local_job import LocalJob, Points
from tests.integration.sinks.support import claimed, tree

_numbers = itertools.count()


def story_of(ports: dict[int, int], version: int) -> Story:
    """Everything that writes: creations, failures, returns, ISR changes, shutdowns, producer ids;
    and two writes that meet what somebody else wrote.
    """
    story = Story()
    rebalance = {"auto.leader.rebalance.enable": True}
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version, **rebalance)
    story.create("t", [[1, 2, 3], [2, 3, 1]], topic_id="xVg7K6qyTvmxpuD7RnqU_w")
    story.alter("t", 0, [1, 2])
    story.create("there", [[3, 1]])
    story.unregister(1)
    story.create("u", [[2], [3]])
    story.register({1: ports[1], 4: ports[4]}, add=200)
    story.ask_producer_ids(2)
    story.alter("t", 1, [2, 3], leader_epoch=1, partition_epoch=1)
    story.register({3: ports[3]}, add=300, how="bounced")
    story.create("there", [[2]])
    story.ask_producer_ids(2)
    story.shut_down(2)
    story.unregister(2)
    story.write("topic_removed", "u", topic="u")
    story.create("u", [[4, 1]])
    armed_ms = story.events[2].time_ms + FIRST_REBALANCE_DELAY_MS
    story.write("timer_due", timer=LEADER_REBALANCE_TIMER, deadline_ms=armed_ms)
    return story


@dataclass
class World:
    """Everything around a job: ZooKeeper, brokers, a front with the recorded log."""

    connect: str
    session: ZkSession
    stubs: StubBrokers
    front: FakeFront
    data_dir: Path
    jobs: list[LocalJob] = field(default_factory=list)

    def open(self, points: Points) -> LocalJob:
        job = LocalJob(self.data_dir, self.connect, points)
        self.jobs.append(job)
        return job

    def start(self) -> LocalJob:
        job = self.open(Points())
        job.start()
        return job

    def outcome(self, job: LocalJob) -> dict[str, Any]:
        """What there is when all is done."""
        job.wait_told()
        with EmbeddedLogReader(self.front.folders.decisions) as reader:
            decisions = list(reader.read(0, reader.end_offset()))
        self.check_brokers(job.fold.machines())
        return {
            "znodes": tree(self.session),
            "decisions": decisions,
            "states": job.fold.states,
            "events": self.front.events(),
        }

    def check_brokers(self, machines: list[Machine]) -> None:
        """Every broker has heard the newest leader epoch of each partition it hosts."""
        image = image_of(machines)
        index, names = image.topic_of_rows()
        for row, topic in enumerate(index):
            number = int(image.columns["partition"][row])
            epoch = int(image.columns["leader_epoch"][row])
            for broker in image.columns["replicas"][row].tolist():
                if broker in image.brokers:
                    heard = self.stubs[broker].leader_epochs.get((names[topic], number))
                    assert heard == epoch, (broker, names[topic], number)


@pytest.fixture(scope="module")
def stubs() -> Iterator[StubBrokers]:
    brokers = StubBrokers()
    brokers.start(1, 2, 3, 4)
    yield brokers
    brokers.close()


@pytest.fixture
def new_world(shared_zookeeper: str, stubs: StubBrokers) -> Iterator[Callable[..., World]]:
    """Make worlds that differ in nothing but their names."""
    worlds: list[World] = []

    def make(tell: Callable[[dict[int, int], int], Story] = story_of) -> World:
        connect = f"{shared_zookeeper}/crash-points-{next(_numbers)}"
        session = ZkSession(connect, 20_000)
        session.connect()
        version = claimed(session)
        session.create("/brokers/topics/there", topic_bytes(TopicZNode({0: [3]})))
        data_dir = Path(tempfile.mkdtemp(prefix="hs-"))
        front = FakeFront(data_dir)
        for id_ in stubs.by_id:
            stubs[id_].leader_epochs.clear()
            stubs[id_].received.clear()
            stubs[id_].errors = {}
        front.record(tell(stubs.ports, version).events)
        world = World(connect, session, stubs, front, data_dir)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        for job in world.jobs:
            job.close()
        world.front.close()
        world.session.close()
        shutil.rmtree(world.data_dir)
