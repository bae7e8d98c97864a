"""The scenarios pass, and the runner fails when what is expected, or what it is asked, changes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.conformance.__main__ import main
from tests.conformance.load import Scenario, load
from tests.conformance.mutants import mutants
from tests.conformance.run import run
from tests.conformance.verdict import Outcome

HERE = Path(__file__).parent
FILES = [HERE / "controller.jsonl", HERE / "vocabulary.jsonl"]
SCENARIOS = [scenario for path in FILES for scenario in load(path)]
PASSING = [scenario for scenario in SCENARIOS if run(scenario).outcome is Outcome.PASSED]
ANOTHER = {
    "partitions": {"state": "Online"},
    "rpcs": {"to": [1], "api": "StopReplica", "partition": "nothing-0"},
    "zk": {"op": "create", "path": "/nothing"},
    "topic_ids_in_memory": "another",
    "topic_ids_in_znode": "another",
}
"""What a changed expectation has where nothing was to be."""
MUST_PASS = {"replica_sm", "election", "assignment"}


def with_then(scenario: Scenario, then: dict[str, Any]) -> Scenario:
    return Scenario(scenario.id, scenario.area, scenario.given, scenario.when, then)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_scenario(scenario: Scenario) -> None:
    verdict = run(scenario)
    assert verdict.outcome is not Outcome.FAILED, verdict.failures
    if scenario.area in MUST_PASS:
        assert verdict.outcome is Outcome.PASSED, verdict.reason
    assert verdict.outcome is Outcome.PASSED or verdict.reason


@pytest.mark.parametrize("scenario", PASSING, ids=lambda scenario: scenario.id)
def test_every_changed_expectation_fails(scenario: Scenario) -> None:
    found = list(mutants(copy.deepcopy(scenario.then), instead=ANOTHER))
    assert found, "nothing is expected of this scenario"
    survived = [then for then in found if not run(with_then(scenario, then)).is_of_facts]
    assert survived == []


@pytest.mark.parametrize(
    ("part", "extra"),
    [
        ("then", {"something": 1}),
        ("then", {"result": {"something": 1}}),
        ("then", {"partitions": {"t-0": {"something": 1}}}),
        ("then", {"zk": [{"op": "create", "path": "/controller", "something": 1}]}),
        ("given", {"something": 1}),
        ("given", {"mock": {"something": 1}}),
    ],
)
def test_what_the_runner_cannot_read_fails(part: str, extra: dict[str, Any]) -> None:
    scenario = next(
        one for one in SCENARIOS if one.id == "psm-online-to-online-preferred-same-leader"
    )
    parts = {"given": dict(scenario.given), "then": dict(scenario.then)}
    parts[part] |= extra
    verdict = run(Scenario("x", scenario.area, parts["given"], scenario.when, parts["then"]))
    assert verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "event", [{"event": "something"}, {"event": "broker_down", "broker": 1, "something": 2}]
)
def test_an_event_the_runner_cannot_read_fails(event: dict[str, Any]) -> None:
    scenario = next(one for one in SCENARIOS if one.id == "own-bounce")
    verdict = run(Scenario("x", scenario.area, scenario.given, [*scenario.when, event], {}))
    assert verdict.outcome is Outcome.FAILED


def test_an_event_without_a_counterpart_is_skipped_with_its_reason() -> None:
    scenario = next(one for one in SCENARIOS if one.id == "own-bounce")
    verdict = run(Scenario("x", scenario.area, scenario.given, [{"event": "broker_metadatas"}], {}))
    assert (verdict.outcome, "admin tools" in verdict.reason) == (Outcome.SKIPPED, True)


def test_the_command_counts_and_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (HERE / "controller.jsonl").read_bytes().splitlines()
    first = orjson.loads(lines[0])
    first["then"]["partitions"]["t-0"]["state"] = "Online"
    file = tmp_path / "mixed.jsonl"
    file.write_bytes(b"\n".join([orjson.dumps(first), lines[1]]))
    assert main([str(file), str(HERE / "groups.jsonl")]) == 1
    output = capsys.readouterr().out.splitlines()
    assert output[0] == (
        'FAILED psm-nonexistent-to-new: partition t-0 state: expected "Online", came "New"'
    )
    assert output[-1] == "91 passed, 1 failed, 1 skipped"
    assert main([str(HERE / "vocabulary.jsonl")]) == 0


@pytest.mark.parametrize("line", ['{"id": "a"}', "{", "[]", '{"steps": []}', "7"])
def test_a_line_that_is_no_scenario_fails(tmp_path: Path, line: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(f"\n{line}\n")
    [scenario] = load(file)
    verdict = run(scenario)
    assert (scenario.id, verdict.outcome) == ("broken.jsonl:2", Outcome.FAILED)


def test_a_scenario_with_a_field_nobody_knows_fails(tmp_path: Path) -> None:
    line = (HERE / "controller.jsonl").read_bytes().splitlines()[0]
    file = tmp_path / "more.jsonl"
    file.write_bytes(orjson.dumps({**orjson.loads(line), "needs": ["something"]}))
    [scenario] = load(file)
    assert run(scenario).outcome is Outcome.FAILED
