"""Machines out of a streaming checkpoint, through Spark's state data source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from checkpoints.ahead import Ahead, read_ahead
from checkpoints.durable import read_file
from checkpoints.layout import CheckpointMismatch, layout_of
from checkpoints.machine_format import decode_machine
from checkpoints.packing import unpacked
from checkpoints.replay import States
from checkpoints.snapshot import Snapshot
from state.step import Machine


def committed_batches(checkpoint: Path) -> list[int]:
    """Return the ids of the retained micro-batches that were committed, ascending."""
    return _batch_ids(checkpoint / "commits")


def planned_batches(checkpoint: Path) -> list[int]:
    """Return the ids of the retained micro-batches that were begun, ascending."""
    return _batch_ids(checkpoint / "offsets")


def _batch_ids(folder: Path) -> list[int]:
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def has_state(checkpoint: Path) -> bool:
    """Return whether the checkpoint has a committed batch."""
    return bool(committed_batches(checkpoint))


def folded_until(checkpoint: Path, batch_id: int | None = None) -> int:
    """Return one past the last event that was folded when a batch was committed, the last one by
    default; 0 without one.

    Raises CheckpointMismatch when Spark's note of it is missing or broken.
    Source: Spark's OffsetSeqLog, one line of JSON per source after version and metadata.
    """
    committed = committed_batches(checkpoint)
    if not committed:
        return 0
    path = checkpoint / "offsets" / str(max(committed) if batch_id is None else batch_id)
    try:
        return int(orjson.loads(read_file(path).splitlines()[2])["offset"])
    except (FileNotFoundError, ValueError, LookupError) as error:
        raise CheckpointMismatch(f"{path} cannot be read: {error}") from error


def carried_out(checkpoint: Path) -> Ahead:
    """Return how far decisions are carried out, and where the batch ends that was begun behind
    that, which may be carried out in part or whole; without one both are the same.

    Raises CheckpointMismatch when what says so is missing or broken.
    """
    noted = read_ahead(checkpoint) or Ahead(None, 0, 0)
    begun = planned_batches(checkpoint)
    done = max(noted.done, folded_until(checkpoint))
    ends = (noted.planned, folded_until(checkpoint, begun[-1]) if begun else 0)
    return Ahead(noted.first, done, next((end for end in ends if end > done), done))


def retained_batch(checkpoint: Path, batch_id: int | None) -> int:
    """Return the id of a batch (None: the last that was committed).

    Raises CheckpointMismatch when it is not in the checkpoint.
    """
    committed = committed_batches(checkpoint)
    if not committed:
        raise CheckpointMismatch(f"{checkpoint} has no committed batch")
    found = committed[-1] if batch_id is None else batch_id
    if found not in committed:
        raise CheckpointMismatch(
            f"batch {found} is not in {checkpoint}: it has {committed[0]} to {committed[-1]}"
        )
    return found


def state_frame(spark: SparkSession, checkpoint: Path, batch_id: int | None = None) -> DataFrame:
    """Return (machine int, state binary), one row a machine, as of a committed batch, the last one
    by default; states as they are stored, see `checkpoints.packing`.

    Raises CheckpointMismatch when the batch is not retained.
    """
    batch_id = retained_batch(checkpoint, batch_id)
    spark.streams.active  # noqa: B018 - starts the state store's coordinator, which the reader needs
    rows = spark.read.format("statestore").option("batchId", batch_id).load(str(checkpoint))
    return rows.selectExpr("key.machine AS machine", "value.groupState.data AS state")


def open_states(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Machine]]:
    """Yield state key and machine of each row of batches of a `state_frame`."""
    for batch in batches:
        keys, states = (batch.column(name).to_pylist() for name in ("machine", "state"))
        for key, data in zip(keys, states, strict=True):
            yield key, decode_machine(unpacked(data))


def read_states(spark: SparkSession, checkpoint: Path, batch_id: int | None = None) -> States:
    """Return the machines' bytes by state key; as `state_frame`."""
    rows = state_frame(spark, checkpoint, batch_id).collect()
    return dict(sorted((int(row["machine"]), unpacked(bytes(row["state"]))) for row in rows))


def read_machines(
    spark: SparkSession, checkpoint: Path, batch_id: int | None = None
) -> dict[int, Machine]:
    """Return the machines as of a committed batch, the last one by default, by state key.

    Raises CorruptBlock when a machine's bytes are of another format version, CheckpointMismatch
    when the batch is not retained.
    """
    states = read_states(spark, checkpoint, batch_id)
    return {key: decode_machine(data) for key, data in states.items()}


def snapshot_of(spark: SparkSession, checkpoint: Path, batch_id: int | None = None) -> Snapshot:
    """Return all machines as of a committed batch, the last one by default; the job may run.

    Raises CheckpointMismatch when the batch is not retained or the folder says nothing of slots.
    """
    # Once: while the states are collected, the job commits further batches.
    batch_id = retained_batch(checkpoint, batch_id)
    # Before the states: by the time that they are collected the batch may be let go of.
    offset, layout = folded_until(checkpoint, batch_id), layout_of(checkpoint)
    return Snapshot(offset, layout, read_states(spark, checkpoint, batch_id))
