"""The choice of steps: reproducible, varied, and only of what can happen."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import orjson

from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.differential.chooser import Chooser
from tests.differential.model import Model
from tests.differential.steps import ACTIONS, Step

STATE = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2, 1]}
TREE = {
    "/admin/delete_topics": (b"", 0),
    "/brokers/topics/quiet": (topic_bytes(TopicZNode({0: [2, 1], 1: [3, 4]})), 0),
    "/brokers/topics/quiet/partitions": (b"", 0),
    "/brokers/topics/quiet/partitions/0/state": (orjson.dumps(STATE), 0),
    "/brokers/topics/other": (topic_bytes(TopicZNode({0: [6]})), 0),
    "/brokers/topics/moving": (
        topic_bytes(TopicZNode({0: [5, 2, 1]}, adding={0: [5]}, removing={0: [1]})),
        0,
    ),
    "/brokers/topics/moving/partitions/0/state": (orjson.dumps(STATE), 0),
}


def steps(seed: int, count: int = 300) -> list[Step]:
    chooser = Chooser(Random(seed))
    return [chooser.next(Model.of(TREE)) for _ in range(count)]


def test_a_seed_gives_its_steps_again() -> None:
    assert list(map(str, steps(1))) == list(map(str, steps(1)))
    assert list(map(str, steps(1))) != list(map(str, steps(2)))


def test_every_action_is_chosen() -> None:
    chosen = Counter(step.name for seed in range(5) for step in steps(seed))
    assert chosen.keys() == ACTIONS.keys()


def test_what_a_comparison_cannot_survive_is_not_chosen() -> None:
    for step in (step for seed in range(5) for step in steps(seed)):
        if step.name in {"delete_topic", "request_deletion"}:
            assert step.of["topic"] != "moving"
        if step.name in {"request_election", "elect_preferred"}:
            assert ("quiet", 1) not in (step.of["partitions"] or [("quiet", 1)])
        if step.name == "reassign":
            assert ("quiet", 1) not in step.of["targets"]


def test_only_one_broker_has_a_failed_disk_until_it_starts_again() -> None:
    failed, failures = None, 0
    for step in steps(3, 1000):
        if failed in (*step.of.get("killed", ()), *step.of.get("bounced", ())):
            failed = None
        if step.name == "fail_disk":
            assert failed is None
            failed = step.of["broker"]
            failures += 1
    assert failures > 1


def test_a_broker_that_asked_to_shut_down_goes_next() -> None:
    chosen = itertools.pairwise(steps(4, 1000))
    asked = [(step, after) for step, after in chosen if step.name == "shut_down_broker"]
    assert asked
    for step, after in asked:
        assert after == Step("change_brokers", {"killed": [step.of["broker"]]})
