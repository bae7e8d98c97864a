"""The ZooKeeper servers that all comparisons share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.servers import Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """ZooKeeper servers in a folder with a short path: that of a Unix socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="hs-") as folder, Servers(Path(folder)) as servers:
        yield servers
