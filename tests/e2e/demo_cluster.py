"""A demo cluster for as long as a test, or a module of tests, lasts."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import OURS, start_everything
from streaming.supervisor.processes import JOB
from streaming.zk.client import ZkSession
from streaming.zk.znodes import broker_path
from tests.e2e.telling import signal_job
from tests.e2e.waiting import wait_for
from tests.fixtures.silence import silent_kafka_client


def controlled(demo: DemoCluster) -> bool:
    """Whether the controller role is ours, and every broker tells clients so."""
    views = demo.broker_views().values()
    told = all(view is not None and view.controller_id == OURS for view in views)
    return told and demo.look().controller_id == OURS


def take_control(demo: DemoCluster) -> None:
    """Start everything, and wait until we control it."""
    start_everything(demo)
    wait_for("our control", lambda: controlled(demo))


def of_protocol(protocol: str, version: str) -> dict[str, Any]:
    """Return what a DemoCluster is made with whose brokers are of a version and speak an
    inter-broker protocol.
    """
    return {"version": version, "broker_config": {"inter.broker.protocol.version": protocol}}


def brokers_of(
    version: str,
    protocol: str,
    *,
    slow: bool = False,
    cluster: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return a test's case: a cluster like the given, whose brokers are of a version and speak an
    inter-broker protocol.
    """
    of = of_protocol(protocol, version)
    config = {**cluster.get("broker_config", {}), **of["broker_config"]}
    return pytest.param(
        {**cluster, **of, "broker_config": config},
        id=f"{version} with {protocol}",
        marks=[pytest.mark.slow] if slow else [],
    )


def start_again(demo: DemoCluster, session: ZkSession, broker_id: int, timeout_s: float) -> None:
    """Start a broker once its last session is over: until then it would not get its id."""
    path = broker_path(broker_id)
    wait_for(f"the end of {path}", lambda: session.get(path) is None, timeout_s)
    demo.broker(broker_id).start(timeout_s)


@contextmanager
def demo_cluster(folder: Path, **options: Any) -> Iterator[DemoCluster]:
    """Make a cluster, whose brokers, front and job the test starts; end all of it.

    On a busy machine brokers' sessions outlive a moment in which they do not run, and the role is
    not given up before a killed job is back.
    """
    config = {"zookeeper.session.timeout.ms": "6000", **options.pop("broker_config", {})}
    chosen = ["--set=controller.lease.ms=240000", *options.pop("options", ())]
    cluster = DemoCluster(folder, chosen, broker_config=config, **options)
    with silent_kafka_client():
        try:
            yield cluster
        finally:
            job = cluster.supervisor.roles[JOB].child
            if job is not None and job.running:
                signal_job(cluster, signal.SIGCONT)  # a JVM that stays stopped outlives its driver
            cluster.stop()
