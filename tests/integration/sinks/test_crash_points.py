"""Killed between any two steps, a job that starts again ends where it would have ended."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from state.step import Machine
from streaming.image.restore import image_of
from streaming.log.embedded import EmbeddedLogReader
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.fixtures.fake_front import FakeFront
from tests.fixtures.story import Story
from tests.fixtures.stub_brokers import StubBrokers
from tests.integration.sinks.local_job import Killed, LocalJob, Points
from tests.integration.sinks.support import claimed, tree, wait_for

ROOT = Path(__file__).parents[3]
BOUND_S = 60
_numbers = itertools.count()
STEPS = ("decision log", "zookeeper", "say", "mark", "deliver", "append")


def story_of(ports: dict[int, int], version: int) -> Story:
    """Everything that writes: creations, failures, returns, ISR changes, shutdowns, producer ids;
    and two writes that meet what somebody else wrote.
    """
    story = Story()
    story.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version)
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
def new_world(shared_zookeeper: str, stubs: StubBrokers) -> Iterator[Callable[[], World]]:
    """Make worlds that differ in nothing but their names."""
    worlds: list[World] = []

    def make() -> World:
        connect = f"{shared_zookeeper}/crash-points-{next(_numbers)}"
        session = ZkSession(connect, 20_000)
        session.connect()
        version = claimed(session)
        session.create("/brokers/topics/there", topic_bytes(TopicZNode({0: [3]})))
        data_dir = Path(tempfile.mkdtemp(prefix="hs-"))
        front = FakeFront(data_dir)
        for id_ in stubs.by_id:
            stubs[id_].leader_epochs.clear()
        front.record(story_of(stubs.ports, version).events)
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


def undisturbed(world: World) -> tuple[dict[str, Any], list[str]]:
    job = world.start()
    job.run()
    found = world.outcome(job)
    job.close()
    return found, job.points.names


def test_the_story_has_conflicts_and_refusals(new_world):
    """What the tests below are about does happen."""
    world = new_world()
    found, names = undisturbed(world)
    recorded = len(story_of(world.stubs.ports, 1).events)
    kinds = [kind for kind, *_ in found["events"][recorded:]]
    assert kinds.count("partition_states_observed") == 1
    assert kinds.count("topic_removed") == 1
    assert {head["conflicts"] for head in world.front.heads("batch")} == {0, 1}
    assert [head["topics"] for head in world.front.heads("reobserve")] == [["there"]]
    assert set(names) == {
        "planned",
        *(f"{when} {step}" for when in ("before", "after") for step in STEPS),
        "between writes",
        "before commit",
        "after commit",
    }


def test_killed_between_any_two_steps(new_world):
    wanted, names = undisturbed(new_world())
    for at, name in enumerate(names):
        world = new_world()
        job = world.open(Points(at))
        with pytest.raises(Killed, match=name):
            job.start()
            job.run()
        job.die()
        job = world.start()
        job.run()
        found = world.outcome(job)
        job.close()
        for what, content in wanted.items():
            assert found[what] == content, f"{what} after point {at}: {name}"


@pytest.mark.parametrize(
    "name", ["between writes", "after zookeeper", "after deliver", "after append", "before commit"]
)
def test_killed_for_real(new_world, name):
    """A process that kills itself, the last time it comes to a point but one."""
    wanted, names = undisturbed(new_world())
    at = [number for number, passed in enumerate(names) if passed == name][-2]
    world = new_world()
    argv = [sys.executable, "-m", "tests.integration.sinks.local_job"]
    killed = subprocess.run(
        [*argv, str(world.data_dir), world.connect, str(at)],
        cwd=ROOT,
        timeout=BOUND_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -9, killed.stderr
    job = world.start()
    job.run()
    assert world.outcome(job) == wanted
    job.close()


def test_killed_again_and_again(new_world):
    """A job that only ever gets one more step done gets everything done."""
    wanted, _ = undisturbed(new_world())
    world = new_world()
    for steps in range(400):
        job = world.open(Points(min(steps, 40)))
        try:
            job.start()
            job.run()
        except Killed:
            job.die()
        else:
            break
    assert world.outcome(job) == wanted
    assert steps > 5
    job.close()


def test_a_decision_log_that_is_ahead_of_the_checkpoint(new_world):
    """The checkpoint of an earlier batch was put back: all later batches are run again."""
    world = new_world()
    wanted, _ = undisturbed(world)
    checkpoint = world.front.folders.checkpoint
    for name in ("commits", "offsets"):
        for number in range(2, 40):
            (checkpoint / name / str(number)).unlink(missing_ok=True)
    job = world.start()
    job.run()
    job.wait_told()
    with EmbeddedLogReader(world.front.folders.decisions) as reader:
        decisions = list(reader.read(0, reader.end_offset()))
    assert decisions[: len(wanted["decisions"])] == wanted["decisions"]
    assert tree(world.session).keys() == wanted["znodes"].keys()
    job.close()


def test_a_batch_waits_for_the_front_and_goes_on(new_world):
    world = new_world()
    wanted, _ = undisturbed(new_world())
    job = world.start()
    real = job.sinks.pipeline._appender.append_of_batch

    def away(*arguments):
        world.front.hang_up()
        job.sinks.pipeline._appender.append_of_batch = real
        threading.Timer(0.5, world.front.listen).start()
        return real(*arguments)

    job.sinks.pipeline._appender.append_of_batch = away
    job.run()
    found = world.outcome(job)
    assert found == wanted
    assert len(world.front.heads("image")) == 2, "one for each time the front was there"
    wait_for(
        "the last batch", lambda: world.front.heads("batch")[-1]["batch_id"] == job.batch_id - 1
    )
    job.close()
