"""How a front ends that is told to, by itself and under a supervisor with its job."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import FRONT, JOB, Supervisor
from streaming.zk.client import ZkSession
from tests.fixtures.plain_job import without_spark
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.front.harness import FrontProcess

ALARMING = ("Traceback", " ERROR ", " WARNING ", "ERROR:", "WARNING:", "error: ")


@pytest.mark.usefixtures("handlers_kept")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_front_that_is_told_to_end_gives_the_role_back(
    zk_session: ZkSession, start_with_job: Callable[[], FrontProcess], number: signal.Signals
) -> None:
    front = start_with_job()
    front.wait_role("active")
    os.kill(front.process.pid, number)
    assert front.wait_end() == 0
    assert zk_session.get("/controller") is None


def test_both_end_in_order_and_nobody_has_the_role(
    zookeeper: str, zk_session: ZkSession, data_dir: Path
) -> None:
    settings = {
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
        "gateway.port": 0,
        "gateway.listeners": "CLIENT",
    }
    supervisor = Supervisor(data_dir, [f"--set={key}={one}" for key, one in settings.items()])
    without_spark(supervisor)
    supervisor.start()
    children = {role: supervisor.roles[role].child for role in (FRONT, JOB)}
    try:
        wait_for("/controller", lambda: zk_session.get("/controller"))
        wait_for("the role", lambda: fetch_status(data_dir, WAIT_S)["role"] == "active")
    finally:
        supervisor.stop()
    assert zk_session.get("/controller") is None
    assert {role: child.return_code for role, child in children.items()} == {FRONT: 0, JOB: 0}
    for role in (FRONT, JOB):
        said = (DataDir(data_dir).printed / f"{role}.log").read_text()
        assert not [line for line in said.splitlines() if any(one in line for one in ALARMING)]
