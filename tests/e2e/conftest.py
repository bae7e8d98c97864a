"""A demo cluster per test, and a ZooKeeper session beside it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from streaming.demo.cluster import DemoCluster
from streaming.embedded.broker import KafkaBroker
from streaming.log.kafka_messages import make_message_classes
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import demo_cluster, take_control
from tests.e2e.group_stage import Stage, staged
from tests.e2e.quorum import Quorum
from tests.e2e.shared import Shared
from tests.e2e.telling import log_ends
from tests.fixtures.plain_job import without_spark
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

_ASK_MS = 120_000

make_message_classes()  # many of these tests have clients of kafka-python in several threads


@pytest.fixture
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DemoCluster]:
    """Arguments of DemoCluster beside its folder may come as the fixture's parameter."""
    with demo_cluster(tmp_path, **getattr(request, "param", {})) as cluster:
        yield cluster


@pytest.fixture
def broker(zookeeper: str, tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that is its own controller."""
    with KafkaBroker(1, zookeeper, tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    """A KRaft controller that has not begun."""
    node = Quorum(tmp_path / "kraft")
    yield node
    node.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what all servers logged last with a test that failed; what it shared is spoilt."""
    report = yield
    shared = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Shared)]
    for one in shared if report.failed else ():
        one.spoil()
    demo = getattr(item, "funcargs", {}).get("demo")
    if report.failed and report.when == "call" and isinstance(demo, DemoCluster):
        report.sections.append(("Ends of the servers' logs", log_ends(demo)))
    return report


@pytest.fixture
def plain_job(demo: DemoCluster) -> None:
    """Where Spark is not what a test is about: its job starts, and is back, in a moment."""
    without_spark(demo.supervisor)


@pytest.fixture
def stage(demo: DemoCluster) -> Iterator[Stage]:
    """Brokers that run, and groups that commit all the time."""
    with staged(demo) as stage:
        yield stage


@pytest.fixture
def admin(demo: DemoCluster) -> Iterator[Any]:
    """An unmodified admin client at the gateway of a cluster that we control."""
    take_control(demo)
    client: Any = KafkaAdminClient(bootstrap_servers=[demo.gateway], request_timeout_ms=_ASK_MS)
    yield client
    client.close()


@pytest.fixture
def session(demo: DemoCluster) -> Iterator[ZkSession]:
    session = ZkSession(demo.embedded.connect, SESSION_TIMEOUT_MS)
    session.connect()
    yield session
    session.close()
