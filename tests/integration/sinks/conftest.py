"""Fixtures of the sinks' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.sinks.zookeeper import ZooKeeperSink
from tests.integration.sinks.support import claimed, open_sink
from tests.integration.sinks.world import new_world, stubs
from tests.unit.sinks.support import Job

__all__ = ["new_world", "stubs"]


@pytest.fixture
def sink(zookeeper) -> Iterator[ZooKeeperSink]:
    with open_sink(zookeeper, max_ops_per_multi=50) as sink:
        yield sink


@pytest.fixture
def job(zk_session) -> Job:
    """A job that has claimed the role and knows three brokers."""
    version = claimed(zk_session)
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13}, epoch_zk_version=version)
    job.persist(job.decide())
    return job
