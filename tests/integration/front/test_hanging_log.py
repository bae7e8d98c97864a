"""A log disk that hangs, instead of failing, does not keep the controller role."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.zk.client import ZkSession
from tests.fixtures.waiting import wait_for
from tests.integration.front import hanging_front
from tests.integration.front.harness import FakeJob, FrontProcess, put_broker

LEASE_S = 4.0
IN_TIME_S = LEASE_S + 25.0
"""A busy machine's delays included."""


@pytest.fixture
def front_and_job(
    zk_session: ZkSession,
    start_front: Callable[..., FrontProcess],
    start_job: Callable[..., FakeJob],
) -> tuple[FrontProcess, FakeJob]:
    """A front that has the role, and a job that has folded everything."""
    put_broker(zk_session, 1)
    lease_ms = int(LEASE_S * 1000)
    front = start_front(program=(hanging_front.__file__,), controller_lease_ms=lease_ms)
    front.wait_listening()
    job = start_job()
    front.wait_role("active")
    wait_for("nothing that waits for the job", lambda: not front.status()["job"]["lag"])
    return front, job


def hang(data_dir: Path) -> None:
    (data_dir / "hang").touch()


def assert_given_up(zk_session: ZkSession) -> None:
    wait_for("the deleted znode", lambda: zk_session.get("/controller") is None, IN_TIME_S)


def test_an_idle_job_does_not_keep_the_role(zk_session, front_and_job, data_dir):
    front, _ = front_and_job
    hang(data_dir)
    put_broker(zk_session, 2)  # what is appended of it waits
    assert_given_up(zk_session)
    assert front.wait_end() == 1
    said = (data_dir / "log" / "front.log").read_text()
    assert "the event log has answered no append for 4 s" in said


def test_a_lease_that_runs_out_ends_the_term(zk_session, front_and_job, data_dir):
    front, job = front_and_job
    hang(data_dir)
    job.end()
    assert_given_up(zk_session)
    assert front.wait_end() == 1


def test_an_orderly_end_is_no_longer_than_the_lease(zk_session, front_and_job, data_dir):
    front, _ = front_and_job
    hang(data_dir)
    begun_s = time.monotonic()
    front.process.terminate(2 * IN_TIME_S)
    assert time.monotonic() - begun_s < IN_TIME_S
    assert zk_session.get("/controller") is None
