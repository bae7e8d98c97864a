"""A file is there whole, under its name, or as it was before."""

from __future__ import annotations

import os

import pytest

from checkpoints.durable import unfinished, write_whole, write_whole_by


@pytest.fixture
def synced(monkeypatch) -> list[int]:
    """What was made durable, by inode."""
    seen: list[int] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        seen.append(os.fstat(fd).st_ino)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    return seen


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_replaces_the_one_before(tmp_path, synced, sync):
    path = tmp_path / "noted.json"
    path.write_bytes(b"before")
    write_whole(path, b"after", sync=sync)
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]
    assert synced == ([path.stat().st_ino, tmp_path.stat().st_ino] if sync else [])


def test_what_is_cut_short_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "noted.json"
    write_whole(path, b"before")

    def cut_short(temporary) -> None:
        temporary.write_bytes(b"aft")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_whole_by(path, cut_short)
    assert (path.read_bytes(), unfinished(path).exists()) == (b"before", False)
    write_whole(path, b"after")
    assert (path.read_bytes(), unfinished(path).exists()) == (b"after", False)
