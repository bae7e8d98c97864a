"""Killed between any two steps, a job that starts again ends where it would have ended."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.decisions import DecisionKind
from streaming.link.job_side import JobLink, LinkDown
from streaming.log.embedded import EmbeddedLogReader
from streaming.sinks import answers
from streaming.wire.apis import ApiKey
from streaming.zk.znodes import parse_topic
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, token_path
from tests.fixtures.waiting import wait_for
from tests.integration.sinks.local_job import Killed, LocalJob, Points
from tests.integration.sinks.stories import (
    ANSWERED,
    ELECTION,
    PLAN,
    SCENARIOS,
    USED_AGAIN,
    Scenario,
    finding_producer_ids,
)
from tests.integration.sinks.support import tree
from tests.integration.sinks.world import World

ROOT = Path(__file__).parents[3]
BOUND_S = 120
TREE = {"/brokers/topics", "/config/topics", "/admin"}
STEPS = ("decision log", "zookeeper", "say", "mark", "deliver", "append")

pytestmark = pytest.mark.timeout(1200)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


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
    recorded = len(world.scenario.tell(world.stubs.ports, 1).events)
    kinds = [kind for kind, *_ in found["events"][recorded:]]
    assert kinds.count("partition_states_observed") == 1
    assert kinds.count("topic_removed") == 1
    assert kinds.count("producer_id_block_observed") == 1
    assert kinds.count("leader_imbalance_reported") == 1
    assert len(kinds) == 4
    assert found["znodes"]["/latest_producer_id_block"][1] == 0, "what rests on it was not written"
    wait_for("the last batch", lambda: len(world.front.heads("batch")) == names.count("planned"))
    assert {head["conflicts"] for head in world.front.heads("batch")} == {0, 1, 2}
    assert [head["topics"] for head in world.front.heads("reobserve")] == [["there"]]
    assert set(names) == {
        "planned",
        *(f"{when} {step}" for when in ("before", "after") for step in STEPS),
        "between writes",
        "before commit",
        "after commit",
    }


def kinds_written(found: dict[str, Any]) -> set[str]:
    return {record.kind for record in found["decisions"]}


def test_the_story_of_deletions_has_every_write_of_one(new_world):
    found, _ = undisturbed(new_world(SCENARIOS["deletions"]))
    assert kinds_written(found) > {
        DecisionKind.MARK_TOPIC_DELETION,
        DecisionKind.UNMARK_TOPIC_DELETION,
        DecisionKind.DELETE_TOPIC,
        DecisionKind.COMPLETE_REASSIGNMENT,
    }
    left = {path for path in found["znodes"] if "/partitions" not in path}
    assert left - TREE == {
        "/brokers/topics/t",
        "/config/topics/t",
        "/brokers/topics/u",
        "/config/topics/u",
        "/admin/delete_topics",
        "/admin/delete_topics/u",
    }


def test_the_story_of_moves_has_every_write_of_one(new_world):
    found, _ = undisturbed(new_world(SCENARIOS["moves"]))
    assert kinds_written(found) > {
        DecisionKind.REWRITE_ASSIGNMENT,
        DecisionKind.COMPLETE_REASSIGNMENT,
        DecisionKind.REMOVE_REASSIGNMENTS,
        DecisionKind.DELETE_ADMIN_ZNODE,
        DecisionKind.DELETE_DELEGATION_TOKEN,
    }
    topic = parse_topic(found["znodes"]["/brokers/topics/t"][0])
    assert topic.replicas == {0: [2, 3], 1: [1, 2], 2: [1]}
    assert (topic.adding, topic.removing) == ({}, {})
    assert not {PLAN, ELECTION} & found["znodes"].keys()
    tokens = {path for path in found["znodes"] if path.startswith(TOKENS_PATH)}
    assert tokens == {TOKENS_PATH, token_path("renewed")}


@pytest.mark.parametrize(
    ("scenario", "every"),
    [
        pytest.param("partitions", 1),
        *(pytest.param(one, 3) for one in ("deletions", "moves")),
        *(pytest.param(one, 1, marks=pytest.mark.slow) for one in ("deletions", "moves")),
    ],
)
def test_killed_between_any_two_steps(new_world, scenario, every):
    killed_between_any_two_steps(new_world, SCENARIOS[scenario], every)


@pytest.mark.parametrize(
    ("scenario", "every"),
    [("partitions", 6), ("deletions", 12), ("moves", 12)],
)
def test_killed_in_a_head_start(new_world, scenario, every):
    """Nothing is committed then: a note says what was carried out, and how far the last batch was
    to go.
    """

    def ahead(scenario: Scenario) -> World:
        world: World = new_world(scenario, ahead=True)
        return world

    wanted = killed_between_any_two_steps(ahead, SCENARIOS[scenario], every)
    assert wanted == undisturbed(new_world(SCENARIOS[scenario]))[0]


@pytest.mark.parametrize(("data", "version"), [(b"", 0), (b"x", -1)], ids=["empty", "broken"])
def test_killed_where_the_block_of_producer_ids_says_nothing(new_world, data, version):
    wanted = killed_between_any_two_steps(new_world, finding_producer_ids(data))
    assert wanted["znodes"]["/latest_producer_id_block"] == (data, 0)
    kind, _, payload = wanted["events"][-1]
    assert kind == "producer_id_block_observed"
    assert orjson.loads(payload) == {"block_end": -1, "zk_version": version}


def killed_between_any_two_steps(
    new_world: Callable[..., World], scenario: Scenario, every: int = 1
) -> dict[str, Any]:
    """Return what there is when a job is never killed, and whenever it was killed once.

    every: how many steps there are from one of the points to the next.
    """
    wanted, names = undisturbed(new_world(scenario))
    for at, name in [*enumerate(names)][::every]:
        world = new_world(scenario)
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
    return wanted


def test_a_killed_job_keeps_no_confirmation(new_world, monkeypatch):
    """What the tests here kill loses what a killed process loses."""
    monkeypatch.setattr(answers, "_PASS_ON_EVERY_S", BOUND_S)
    job = new_world().start()
    job.run()
    job.wait_answered()
    job.die()
    assert job.marked()


def test_a_name_that_is_used_again_is_not_deleted_again(new_world):
    """The batch was carried out and not committed: to the checkpoint the topics are in deletion."""
    _, names = undisturbed(new_world(USED_AGAIN))
    world = new_world(USED_AGAIN)
    last = len(names) - 1 - names[::-1].index("before commit")
    job = world.open(Points(last))
    job.start()
    with pytest.raises(Killed):
        job.run()
    job.die()
    wait_for("the job's end", lambda: not world.stubs[1].connected)
    world.stubs[1].received.clear()
    before = tree(world.session)
    job = world.start()
    job.run()
    job.wait_told()
    assert ApiKey.LEADER_AND_ISR in world.stubs[1].apis()
    assert ApiKey.STOP_REPLICA not in world.stubs[1].apis()
    assert tree(world.session) == before
    job.close()


def fold_until(world: World, job: LocalJob, gone: set[str]) -> None:
    """Fold what is in the log and what brokers answer until some topics are gone."""

    def all_gone() -> bool:
        job.run()
        return not any(
            path.split("/")[3:4] == [topic] for path in tree(world.session) for topic in gone
        )

    wait_for(f"the end of {gone}", all_gone)


def test_killed_while_brokers_answer_for_their_deletions(new_world):
    """Answers come when they come, so that only what is left in the end is the same."""
    deleted, left = {"t", "u", "nobody"}, None
    for at in (None, *range(0, 400, 6)):
        world = new_world(ANSWERED)
        job = world.open(Points(at))
        try:
            job.start()
            fold_until(world, job, deleted)
        except Killed:
            job.die()
        else:
            job.close()
            left = left or tree(world.session)
            if at is not None:
                break
        job = world.start()
        fold_until(world, job, deleted)
        assert tree(world.session) == left, f"after point {at}"
        job.close()
    assert left is not None
    assert at > 40, "there were fewer points than steps"
    assert {path.split("/")[3] for path in left if path.startswith("/brokers/topics/")} == {"v"}


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


@pytest.mark.parametrize("ahead", [False, True], ids=["", "head start"])
@every_scenario
def test_killed_again_and_again(new_world, scenario, ahead):
    """A job that only ever gets one more step done gets everything done."""
    wanted, _ = undisturbed(new_world(scenario))
    world = new_world(scenario, ahead=ahead)
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


def test_a_front_that_missed_what_to_read_again_is_asked_with_the_next_batch(
    new_world, monkeypatch
):
    wanted, _ = undisturbed(new_world())
    real = JobLink.send
    missed: list[list[str]] = []

    def send(link, head, body=b""):
        if head["type"] == "reobserve" and not missed:
            missed.append(head["topics"])
            raise LinkDown("away")
        real(link, head, body)

    monkeypatch.setattr(JobLink, "send", send)
    world = new_world()
    job = world.start()
    job.run()
    assert world.outcome(job) == wanted
    assert missed == [["there"]]
    job.close()
