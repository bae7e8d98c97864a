"""Random sequences of what happens to clusters, by Kafka 3.9's own controller and by ours."""

from __future__ import annotations

import pytest

from tests.differential.outcome import Outcome
from tests.differential.run import Run
from tests.differential.servers import Servers

STEPS = 30
STEPS_IN_SPARK = 20
TIMEOUT_S = 900


def outcome(servers: Servers, seed: int, *, spark: bool = False) -> Outcome:
    run = Run(seed, *servers.places(str(seed)), spark=spark)
    try:
        return run.take(STEPS_IN_SPARK if spark else STEPS)
    finally:
        run.close()


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", [1, 2])
def test_both_controllers_do_the_same(servers: Servers, seed: int) -> None:
    found = outcome(servers, seed)
    assert not found.differences, found.report()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_the_job_in_spark_does_the_same(servers: Servers) -> None:
    found = outcome(servers, 3, spark=True)
    assert not found.differences, found.report()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", range(1, 51))
def test_fifty_seeds(servers: Servers, seed: int) -> None:
    found = outcome(servers, seed)
    assert not found.differences, found.report()
