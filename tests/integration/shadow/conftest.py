"""The cluster that a shadow reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.shadow.support import live_cluster


@pytest.fixture
def live(zookeeper: str) -> Iterator[ZkSession]:
    """The session of whoever acts in the cluster: its brokers and its controller."""
    with live_cluster(zookeeper) as session:
        yield session


@pytest.fixture
def seen(live: ZkSession) -> Iterator[ZkReader]:
    """The session of who looks at it."""
    with ZkReader(live.hosts, SESSION_TIMEOUT_MS) as session:
        yield session
