"""States are read without Spark where all their files are there."""

from __future__ import annotations

import pytest

from checkpoints.state_files import StatesUnreadable, _changes


def test_the_files_of_a_version_begin_with_its_last_snapshot(tmp_path):
    for name in ("2.delta", "2.snapshot", "3.delta", "4.delta"):
        (tmp_path / name).touch()
    assert [path.name for path in _changes(tmp_path, 4)] == ["2.snapshot", "3.delta", "4.delta"]


def test_the_first_file_that_is_missing_ends_the_search(tmp_path):
    """There may have been millions of batches."""
    (tmp_path / "1000000000000.delta").touch()
    with pytest.raises(StatesUnreadable, match=r"999999999999\.delta is missing"):
        _changes(tmp_path, 1_000_000_000_000)
