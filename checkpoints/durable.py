"""Files that a crash of the machine leaves whole or not there, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError name the file, as one of opening does and one of reading does not."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def read_file(path: Path) -> bytes:
    """Return what a file holds; an OSError names it."""
    with naming(path):
        return path.read_bytes()


def fsync_folder(folder: Path) -> None:
    """Make the creation, renaming and deletion of files in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def put_in_place(written: Path, path: Path) -> None:
    """Give a file that is complete its name, durably; both are in one folder."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    written.replace(path)
    fsync_folder(path.parent)
