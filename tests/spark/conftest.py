"""A Spark session for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.query_run import settings_of


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """The job's own session; modules that need another have a fixture of this name."""
    from streaming.spark.session import open_spark

    session = open_spark(settings_of(Path("unused")))
    yield session
    session.stop()
