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

from state.protocol_errors import ProtocolError
from state.step import Machine
from streaming.image.restore import image_of
from streaming.log.embedded import EmbeddedLogReader
from streaming.zk.client import ZkSession
from tests.fixtures.fake_front import FakeFront
from tests.fixtures.stub_brokers import StubBroker, StubBrokers
from tests.fixtures.waiting import wait_for
from tests.integration.sinks.local_job import LocalJob, Points
from tests.integration.sinks.stories import SCENARIOS, Scenario
from tests.integration.sinks.support import claimed, tree

_numbers = itertools.count()


@dataclass
class World:
    """Everything around a job: ZooKeeper, brokers, a front with the recorded log."""

    connect: str
    session: ZkSession
    stubs: StubBrokers
    front: FakeFront
    data_dir: Path
    scenario: Scenario
    ahead: bool = False
    jobs: list[LocalJob] = field(default_factory=list)

    def open(self, points: Points) -> LocalJob:
        job = LocalJob(
            self.data_dir,
            self.connect,
            points,
            meddled=self.scenario.meddled,
            ahead=self.ahead,
        )
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
            "observed again": self.observed_again(job),
        }

    def observed_again(self, job: LocalJob) -> set[str]:
        """The topics that the front was asked to read again at least once."""

        def has_ended() -> bool:
            return any(head["end_offset"] == job.folded for head in self.front.heads("batch"))

        wait_for("the last batch", has_ended)
        told = self.front.heads("reobserve")
        return {topic for head in told for topic in head["topics"]}

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


def make_fresh(stub: StubBroker, scenario: Scenario) -> None:
    """Let a broker forget the last job and answer as the scenario has it."""
    wait_for("the last job's end", lambda: not stub.connected)
    stub.leader_epochs.clear()
    stub.received.clear()
    stub.errors = {}
    stub.silent = False
    # Such an answer makes no event, so that there are only those of the recorded log.
    recorded = scenario.answers_recorded
    stub.stop_error = int(ProtocolError.STALE_BROKER_EPOCH) if recorded else 0


@pytest.fixture
def new_world(shared_zookeeper: str, stubs: StubBrokers) -> Iterator[Callable[..., World]]:
    """Make worlds: those of one scenario differ in nothing but their names."""
    worlds: list[World] = []

    def make(scenario: Scenario = SCENARIOS["partitions"], *, ahead: bool = False) -> World:
        connect = f"{shared_zookeeper}/crash-points-{next(_numbers)}"
        session = ZkSession(connect, 20_000)
        session.connect()
        version = claimed(session)
        scenario.prepare(session)
        data_dir = Path(tempfile.mkdtemp(prefix="hs-"))
        front = FakeFront(data_dir)
        for id_ in stubs.by_id:
            make_fresh(stubs[id_], scenario)
        front.record(scenario.tell(stubs.ports, version).events)
        world = World(connect, session, stubs, front, data_dir, scenario, ahead)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        for job in world.jobs:
            job.close()
        world.front.close()
        world.session.close()
        shutil.rmtree(world.data_dir)
