"""Files that a crash of the machine leaves whole or not there, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError name the file, as one of opening does and one of reading or writing not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
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


def unfinished(path: Path) -> Path:
    """Return where a file is written before it has its name; a crash may leave it there."""
    return path.with_name(f"{path.name}.tmp")


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file, whole or not at all; sync: also when the machine crashes right after."""
    write_whole_by(path, lambda temporary: temporary.write_bytes(data), sync=sync)


def write_whole_by(path: Path, write: Callable[[Path], object], *, sync: bool = True) -> None:
    """Let a file be written to the path that `write` is given; otherwise as `write_whole`.

    Where it fails nothing is left of it, and an OSError names the file as it was to be called.
    """
    temporary = unfinished(path)
    try:
        write(temporary)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = str(path)
        raise
    if sync:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    temporary.replace(path)
    if sync:
        fsync_folder(path.parent)
