"""A recording with two topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.explain.recording import PORTS, Recording


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    made = Recording(tmp_path)
    made.story.elect(PORTS)
    made.story.create("my-topic", [[1, 2, 3]])
    made.story.create("other", [[1, 2]])
    yield made
    made.close()
