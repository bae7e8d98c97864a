"""A seed stands for one list of operations, and none of them may lose what was acknowledged."""

from __future__ import annotations

import pytest

from tests.e2e.random_plan import BROKERS, MOST_DOWN, SHARES, Operation, Plan

MAIN = "main"
UNCLEAN = {"elect unclean", "set topic config"}
DELETING = {"delete topic", "mark topic for deletion"}


def drawn(seed: int, count: int = 200) -> list[Operation]:
    return list(Plan(seed, (MAIN, 12)).draw(count))


def test_a_seed_always_draws_the_same() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7)[:25] == drawn(7, 25)
    assert drawn(7) != drawn(8)


def test_every_operation_is_drawn() -> None:
    assert {one.name for seed in range(5) for one in drawn(seed)} == SHARES.keys()


@pytest.mark.parametrize("seed", range(10))
def test_what_is_produced_to_stays_and_keeps_two_replicas(seed: int) -> None:
    for one in drawn(seed):
        topics = {one.of.get("topic"), *(topic for topic, _ in one.of.get("partitions", ()))}
        assert one.name not in UNCLEAN | DELETING or MAIN not in topics, str(one)
        for (topic, _), replicas in one.of.get("moves", {}).items():
            assert len(replicas) >= (2 if topic == MAIN else 1), str(one)


@pytest.mark.parametrize("seed", range(10))
def test_a_broker_stays_and_only_what_is_down_returns(seed: int) -> None:
    down: dict[int, str] = {}
    how = {"kill broker": "killed", "terminate broker": "terminated", "pause broker": "paused"}
    for one in drawn(seed):
        if one.name in how:
            assert one.of["broker"] in set(BROKERS) - down.keys()
            down[one.of["broker"]] = how[one.name]
        elif one.name == "return broker":
            assert down.pop(one.of["broker"]) == one.of["was"]
        assert len(down) <= MOST_DOWN
