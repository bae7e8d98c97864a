"""Fixtures of the front: a short data folder, fronts and jobs that end with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.zk.client import ZkSession
from tests.integration.front.harness import FakeJob, FrontProcess, put_broker, put_topic


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder with a short path: that of a Unix socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        yield Path(folder)


@pytest.fixture
def start_front(data_dir: Path, zookeeper: str) -> Iterator[Callable[..., FrontProcess]]:
    """Start fronts on the data folder, one at a time; they are killed after the test."""
    fronts: list[FrontProcess] = []

    def start(zookeeper: str = zookeeper, **settings: Any) -> FrontProcess:
        fronts.append(FrontProcess(data_dir, zookeeper, **settings))
        return fronts[-1]

    yield start
    for front in fronts:
        if front.process.running:
            front.process.kill()


@pytest.fixture
def start_job(data_dir: Path) -> Iterator[Callable[..., FakeJob]]:
    """Start jobs on the data folder; they end after the test."""
    with ExitStack() as jobs:

        def start(**arguments: Any) -> FakeJob:
            job = FakeJob(data_dir, **arguments)
            jobs.callback(job.end)
            return job

        yield start


@pytest.fixture
def start_with_job(
    start_front: Callable[..., FrontProcess], start_job: Callable[..., FakeJob]
) -> Callable[..., FrontProcess]:
    """Start a front, and a job as soon as it listens."""

    def start(*arguments: str, **settings: Any) -> FrontProcess:
        front = start_front(*arguments, **settings)
        front.wait_listening()
        start_job()
        return front

    return start


@pytest.fixture
def front(zk_session: ZkSession, start_with_job: Callable[..., FrontProcess]) -> FrontProcess:
    """An active front over broker 1 and topic t."""
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1, 2], [2, 1]])
    front = start_with_job()
    front.wait_role("active")
    return front
