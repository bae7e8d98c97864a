"""How much is copied at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.log import copying
from streaming.log.api import NewRecord
from streaming.log.copying import copy_records, next_records
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter


@pytest.mark.parametrize(
    ("bound", "at_once"), [("_AT_ONCE", (3, 3, 1)), ("GROUP_BYTES_MAX", (2, 2, 2, 1))]
)
def test_what_is_copied_at_once_is_bounded_in_records_and_in_bytes(
    bound: str,
    at_once: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, bound, 3)
    with EmbeddedLogWriter(tmp_path / "from") as log:
        log.append([NewRecord("kind", str(number), b"xy") for number in range(7)])
    first = 0
    with EmbeddedLogReader(tmp_path / "from") as reader:
        for count in at_once:
            assert len(next_records(reader, first, 7)) == count
            first += count
        with EmbeddedLogWriter(tmp_path / "to") as copy:
            assert copy_records(reader, copy) == 7
        with EmbeddedLogReader(tmp_path / "to") as copied:
            assert list(copied.read(0, 7)) == list(reader.read(0, 7))
