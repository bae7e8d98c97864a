"""Random operations on real brokers; by hand: python -m tests.e2e.random_operations --help."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.zk.client import ZkSession
from tests.e2e import random_shadow
from tests.e2e.random_operations import NO_MORE, More, Outcome, cluster_options, run

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

ALL_MORE = More(groups=True, zookeeper=True)
alone = pytest.mark.parametrize("demo", [cluster_options(NO_MORE)], indirect=True)
with_groups = pytest.mark.parametrize("demo", [cluster_options(ALL_MORE)], indirect=True)


def check(
    demo: DemoCluster, session: ZkSession, seed: int, operations: int, more: More = NO_MORE
) -> None:
    told: list[str] = []
    say: Callable[[str], None] = told.append
    judge(run(demo, session, seed, operations, say, more=more), told)


def judge(outcome: Outcome, told: list[str]) -> None:
    """Fail for records that are lost, and then for the rest, whose text tells of no records: it may
    be tried again.
    """
    losses, faults = outcome.losses, outcome.faults
    assert not losses, "\n".join([*told, str(outcome)])
    assert not faults, "\n".join([*told, *faults])


@alone
@pytest.mark.usefixtures("plain_job")
@pytest.mark.timeout(900)
def test_a_few_random_operations(demo: DemoCluster, session: ZkSession) -> None:
    check(demo, session, seed=79, operations=25)


@alone
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [31, 32])
def test_two_hundred_random_operations(demo: DemoCluster, session: ZkSession, seed: int) -> None:
    check(demo, session, seed, operations=200)


@with_groups
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [303, 401])
def test_groups_live_through_random_operations(
    demo: DemoCluster, session: ZkSession, seed: int
) -> None:
    check(demo, session, seed, operations=100, more=ALL_MORE)


@alone
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [501, 502])
def test_a_shadow_agrees_through_random_operations(
    demo: DemoCluster, session: ZkSession, seed: int
) -> None:
    told: list[str] = []
    code = random_shadow.run(demo, session, seed, 80, told.append)
    assert code == 0, "\n".join(["DIFFERENT", *told, random_shadow.said(demo)])
