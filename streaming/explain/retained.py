"""The machines as they were before an event, where the log does not reach back far enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoints.layout import CheckpointMismatch
from checkpoints.snapshot import Snapshot
from streaming.checkpoint_tools.snapshots import checkpoint_at, is_exported, load_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def retained_before(path: Path, offset: int, spark: Callable[[], SparkSession]) -> Snapshot:
    """Return the machines at `path` as of the last place in the log that is not after an event.

    path: a checkpoint, of which the right batch is taken, a data folder, or an exported file.
    Raises CheckpointMismatch when what is there is of later.
    """
    if is_exported(path):
        found = load_snapshot(path, spark)
        if found.offset <= offset:
            return found
        raise CheckpointMismatch(f"{path} is as of event {found.offset}, not before {offset}")
    from checkpoints.read import committed_batches, folded_until  # noqa: PLC0415 - they need Spark

    checkpoint = checkpoint_at(path)
    batches = committed_batches(checkpoint)
    earlier = [batch for batch in batches if folded_until(checkpoint, batch) <= offset]
    if not earlier:
        raise CheckpointMismatch(f"{checkpoint} retains no batch from before event {offset}")
    return load_snapshot(path, spark, max(earlier))
