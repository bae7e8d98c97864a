"""Random operations on real brokers; by hand: python -m tests.e2e.random_operations --help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.zk.client import ZkSession
from tests.e2e import random_shadow
from tests.e2e.demo_cluster import demo_cluster
from tests.e2e.random_logs import log_cluster_in
from tests.e2e.random_operations import NO_MORE, More, Outcome, cluster_options, run
from tests.fixtures.log_cluster import LogCluster
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

GROUPS_MORE = More(groups=True, zookeeper=True)
FROM_2_1 = ("2.1.1", "2.2.2", "3.9.2")
FROM_2_4 = ("2.4.1", "2.5.1", "2.6.3", "2.7.2")
FROM_2_7 = ("2.7.2", "2.8.2", "3.9.2")
ALL_MORE = More(
    groups=True,
    zookeeper=True,
    standby=True,
    log_cluster=True,
    recovery=True,
    deprioritize=True,
)
alone = pytest.mark.parametrize("demo", [cluster_options(NO_MORE)], indirect=True)
with_groups = pytest.mark.parametrize("demo", [cluster_options(GROUPS_MORE)], indirect=True)


def check(
    demo: DemoCluster,
    session: ZkSession,
    seed: int,
    *,
    operations: int,
    more: More = NO_MORE,
    log_cluster: LogCluster | None = None,
) -> None:
    told: list[str] = []
    say: Callable[[str], None] = told.append
    judge(run(demo, session, seed, operations, say, more=more, log_cluster=log_cluster), told)


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
    check(demo, session, 79, operations=25)


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
    check(demo, session, seed, operations=100, more=GROUPS_MORE)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [901])
def test_a_standby_and_a_log_cluster_live_through_them(tmp_path: Path, seed: int) -> None:
    with (
        log_cluster_in(tmp_path / "logs") as logs,
        demo_cluster(tmp_path, **cluster_options(ALL_MORE, logs)) as demo,
        ZkSession(demo.embedded.connect, SESSION_TIMEOUT_MS) as session,
    ):
        check(demo, session, seed, operations=100, more=ALL_MORE, log_cluster=logs)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("seed", "more"),
    [
        (1001, More(groups=True, zookeeper=True, protocol="2.8", versions=("2.8.2", "3.9.2"))),
        (1004, More(zookeeper=True, protocol="2.0", versions=("2.0.1", "2.3.1", "3.9.2"))),
        (1211, More(groups=True, ensemble=True)),
        (1303, More(groups=True, zookeeper=True, protocol="2.7", versions=FROM_2_7)),
        (1301, More(groups=True, zookeeper=True, protocol="2.4", versions=FROM_2_4)),
        (1402, More(groups=True, zookeeper=True, protocol="2.1", versions=FROM_2_1)),
    ],
    ids=[
        "brokers return as 2.8 to 3.9",
        "brokers return as 2.0 to 3.9",
        "three ZooKeepers",
        "groups of brokers that return as 2.7 to 3.9",
        "groups of brokers that return as 2.4 to 2.7",
        "groups of brokers that return as 2.1 to 3.9",
    ],
)
def test_other_clusters_live_through_them(tmp_path: Path, seed: int, more: More) -> None:
    with (
        demo_cluster(tmp_path, **cluster_options(more)) as demo,
        ZkSession(demo.embedded.connect, SESSION_TIMEOUT_MS) as session,
    ):
        check(demo, session, seed, operations=60, more=more)


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
