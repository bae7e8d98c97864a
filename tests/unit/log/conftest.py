"""Small builders for the tests of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter

OpenWriter = Callable[..., EmbeddedLogWriter]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.fixture
def open_writer(folder: Path) -> Iterator[OpenWriter]:
    """Open the writer of `folder`; what a test leaves open is closed after it."""
    opened: list[EmbeddedLogWriter] = []

    def open_it(**options: object) -> EmbeddedLogWriter:
        opened.append(EmbeddedLogWriter(folder, **options))
        return opened[-1]

    yield open_it
    for writer in opened:
        writer.close()


@pytest.fixture
def records() -> Callable[..., list[NewRecord]]:
    """`records(n, start)`: n different small records."""

    def make(count: int, start: int = 0) -> list[NewRecord]:
        return [
            NewRecord("topic_observed", f"topic-{number}", b"payload-%d" % number)
            for number in range(start, start + count)
        ]

    return make
