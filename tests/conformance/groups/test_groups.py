"""The group scenarios pass, and fail when what is expected, or what is asked, changes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.groups.expectations import EXPECTATIONS
from tests.conformance.groups.run import ONLY_OLD
from tests.conformance.load import Scenario, load
from tests.conformance.mutants import mutants
from tests.conformance.run import run
from tests.conformance.verdict import Outcome

HERE = Path(__file__).parents[1]
SCENARIOS = [
    *load(HERE / "groups.jsonl"),
    *load(HERE / "groups-vocabulary.jsonl"),
]
CURRENT = [one for one in SCENARIOS if "3.9" in one.given["applies_to"]]
FIXED = {
    "expect_reply", "expect_pending", "expect_group", "expect_one_leader", "path", "from", "to",
    "as", "at_ms", "not", "not_members",
}  # fmt: skip
"""What names the things that are asserted, and what more than one value meets."""


def stays(key: str, value: Any) -> bool:
    return key in FIXED or value is None


def _at(step: dict[str, Any]) -> dict[str, Any]:
    return {"at_ms": step["at_ms"]} if "at_ms" in step else {}


def with_step(scenario: Scenario, at: int, step: dict[str, Any]) -> Scenario:
    steps = [*scenario.given["steps"]]
    steps[at] = step
    return Scenario(scenario.id, "groups", {**scenario.given, "steps": steps[: at + 1]})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_scenario(scenario: Scenario) -> None:
    verdict = run(scenario)
    assert verdict.outcome is not Outcome.FAILED, verdict.failures
    assert verdict.outcome is Outcome.PASSED or verdict.reason == ONLY_OLD


@pytest.mark.parametrize("scenario", CURRENT, ids=lambda scenario: scenario.id)
def test_every_changed_expectation_fails(scenario: Scenario) -> None:
    survived = []
    tried = 0
    for at, step in enumerate(scenario.given["steps"]):
        if not any(name in step for name in EXPECTATIONS):
            continue
        if "expect_pending" in step:
            others = [{**_at(step), "expect_reply": step["expect_pending"], "error": "NONE"}]
        elif "expect_equal" in step:
            others = []
        elif step.get("error") and "expect_reply" in step:
            pending = {**_at(step), "expect_pending": step["expect_reply"]}
            others = [pending, *mutants(copy.deepcopy(step), stays)]
        else:
            others = list(mutants(copy.deepcopy(step), stays))
        for other in others:
            tried += 1
            if not run(with_step(scenario, at, other)).is_of_facts:
                survived.append((step, other))
    assert tried, "nothing is expected of this scenario"
    assert survived == []


@pytest.mark.parametrize(
    "step",
    [
        {"something": 1},
        {"env": "something"},
        {"env": "expire_offsets", "something": 1},
        {"expect_group": "g", "something": 1},
        {"expect_reply": "nobody"},
        {"send": {"api": "Something", "version": 1, "group": "g"}, "as": "x"},
        {"send": {"api": "Heartbeat", "version": 1, "group": "g", "something": 1}, "as": "x"},
        {"storage_release": "nobody"},
        {"storage_error": "SOMETHING"},
        {"expect_value": {"something": 1}},
    ],
    ids=str,
)
def test_a_step_the_runner_cannot_read_fails(step: dict[str, Any]) -> None:
    verdict = run(Scenario("x", "groups", {"steps": [step]}))
    assert verdict.outcome is Outcome.FAILED


def test_what_the_runner_cannot_provide_is_skipped_with_the_reason() -> None:
    verdict = run(Scenario("x", "groups", {"steps": [], "needs": ["a_miracle"]}))
    assert (verdict.outcome, "a_miracle" in verdict.reason) == (Outcome.SKIPPED, True)
