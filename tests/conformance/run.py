"""Runs one scenario from its line to its verdict."""

from __future__ import annotations

import traceback

from tests.conformance.checks import check
from tests.conformance.events import make_happen, understand
from tests.conformance.given import build
from tests.conformance.groups.run import run_steps
from tests.conformance.load import Scenario
from tests.conformance.verdict import (
    KNOWN,
    NO_ERROR,
    Failure,
    Findings,
    NotUnderstoodError,
    Outcome,
    SkippedError,
    Verdict,
)


def run(scenario: Scenario) -> Verdict:
    """Return what can be said of a scenario; whatever goes wrong fails it."""
    try:
        return _run(scenario)
    except SkippedError as reason:
        return Verdict(scenario.id, Outcome.SKIPPED, reason=str(reason))
    except NotUnderstoodError as error:
        failure = Failure(KNOWN, "known to the runner", str(error))
    except Exception as error:  # noqa: BLE001 - a runner that stops would hide the other scenarios
        where = traceback.extract_tb(error.__traceback__)[-1]
        came = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"
        failure = Failure(NO_ERROR, "no error", came)
    return Verdict(scenario.id, Outcome.FAILED, (failure,))


def _run(scenario: Scenario) -> Verdict:
    if scenario.problem:
        raise NotUnderstoodError(scenario.problem)
    if scenario.area == "groups":
        return _verdict(scenario, run_steps(scenario.given))
    understand(scenario.when)
    world = build(scenario)
    for event in scenario.when:
        make_happen(world, event)
    return _verdict(scenario, check(world, scenario.then))


def _verdict(scenario: Scenario, found: Findings) -> Verdict:
    if found.failures:
        return Verdict(scenario.id, Outcome.FAILED, tuple(found.failures))
    return Verdict(scenario.id, Outcome.PASSED)
