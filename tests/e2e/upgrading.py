"""Raises the inter-broker protocol of a cluster that we control, which has a job without Spark."""

from __future__ import annotations

from collections.abc import Callable

from streaming.demo.cluster import DemoCluster
from streaming.supervisor.processes import Supervisor
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import controlled, start_again
from tests.e2e.random_checks import wait_until_finished
from tests.e2e.waiting import WAIT_S, wait_for
from tests.fixtures.plain_job import without_spark

PROTOCOL = "inter.broker.protocol.version"
NEW = "3.9"
_STOP_S = 60.0

Step = Callable[[DemoCluster, ZkSession], None]


def raise_brokers(demo: DemoCluster, session: ZkSession) -> None:
    """One after the other, each once the one before it is in sync."""
    for broker_id, broker in demo.embedded.brokers.items():
        assert broker.terminate(_STOP_S), f"broker {broker_id} did not end by itself"
        broker.change_config({PROTOCOL: NEW})
        start_again(demo, session, broker_id, WAIT_S)
        wait_until_finished(demo, session)


def raise_ours(demo: DemoCluster, session: ZkSession) -> None:
    """Stop front and job, and start them with the other setting on the same folder."""
    before = demo.look().controller_epoch
    demo.stop_ours()
    config = [*demo.supervisor.config, f"--set={PROTOCOL}={NEW}"]
    demo.supervisor = Supervisor(demo.folders.root, config)
    without_spark(demo.supervisor)
    demo.start_ours()
    wait_for("our control again", lambda: demo.look().controller_epoch > before)
    wait_for("our control again", lambda: controlled(demo))
    wait_until_finished(demo, session)
