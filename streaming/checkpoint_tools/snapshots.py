"""Finds machines by a path that a user gives: a checkpoint, a data folder, an exported file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoints.layout import CheckpointMismatch
from checkpoints.snapshot import Snapshot, read_snapshot
from streaming.paths import DataDir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MACHINES_FILE = "machines.parquet"
"""Name of the file of machines in a folder that was exported, or that a replay wrote."""


def checkpoint_at(path: Path) -> Path:
    """Return the checkpoint's folder: `path`, or `path/checkpoint` of a data folder.

    Raises CheckpointMismatch when nothing is there.
    """
    inside = DataDir(path).checkpoint
    found = inside if inside.is_dir() else path
    if not (found / "commits").is_dir():
        raise CheckpointMismatch(f"{path}: there is no checkpoint")
    return found


def is_exported(path: Path) -> bool:
    """Return whether `path` is an exported file, or a folder with one."""
    return path.is_file() or (path / MACHINES_FILE).is_file()


def check_machines_at(path: Path) -> None:
    """Raise CheckpointMismatch when no machines are at `path`."""
    if not is_exported(path):
        checkpoint_at(path)


def load_snapshot(
    path: Path, spark: Callable[[], SparkSession], batch_id: int | None = None
) -> Snapshot:
    """Return the machines at `path`; spark is called only where a streaming checkpoint is read.

    batch_id: of a streaming checkpoint, the last one by default. Raises CheckpointMismatch.
    """
    if is_exported(path):
        return read_snapshot(path if path.is_file() else path / MACHINES_FILE)
    checkpoint = checkpoint_at(path)
    from checkpoints.read import retained_batch, snapshot_of  # noqa: PLC0415 - they need Spark

    retained_batch(checkpoint, batch_id)  # before Spark starts, which takes long
    return snapshot_of(spark(), checkpoint, batch_id)
