"""Random requests of groups' clients, answered by Kafka 3.9's own coordinator and by ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.groups.systems import FOLDING, HELMSTREAM
from tests.differential.groups.coordinators import Coordinators
from tests.differential.groups.run import Run
from tests.differential.outcome import Outcome

STEPS = 80
TIMEOUT_S = 900


@pytest.fixture(scope="module", params=[FOLDING])
def coordinators(request: pytest.FixtureRequest) -> Iterator[Coordinators]:
    """In a folder with a short path: that of a Unix socket may not be long."""
    with (
        tempfile.TemporaryDirectory(prefix="hs-") as folder,
        Coordinators(Path(folder), system=request.param) as both,
    ):
        yield both


def outcome(coordinators: Coordinators, seed: int) -> Outcome:
    with coordinators.sides() as sides:
        return Run(seed, *sides).take(STEPS)


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", [1, 2])
def test_both_coordinators_answer_the_same(coordinators: Coordinators, seed: int) -> None:
    found = outcome(coordinators, seed)
    assert not found.differences, found.report()


@pytest.mark.timeout(TIMEOUT_S)
def test_who_loads_the_groups_answers_the_same(coordinators: Coordinators) -> None:
    with coordinators.sides() as sides:
        run = Run(4, *sides)
        run.take(STEPS // 2)
        run.outcome.differences += coordinators.interrupt(run)
        found = run.take(STEPS)
    assert not found.differences, found.report()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("coordinators", [HELMSTREAM], indirect=True)
def test_the_job_in_spark_answers_the_same(coordinators: Coordinators) -> None:
    found = outcome(coordinators, 5)
    assert not found.differences, found.report()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", range(6, 36))
def test_thirty_seeds(coordinators: Coordinators, seed: int) -> None:
    found = outcome(coordinators, seed)
    assert not found.differences, found.report()
