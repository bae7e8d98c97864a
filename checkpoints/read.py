"""Machines out of a streaming checkpoint, through Spark's state data source."""

from __future__ import annotations

from pathlib import Path

import orjson
from pyspark.sql import SparkSession

from checkpoints.machine_format import decode_machine
from state.step import Machine


def has_state(checkpoint: Path) -> bool:
    """Return whether the checkpoint has a committed batch."""
    commits = checkpoint / "commits"
    return commits.is_dir() and any(path.name.isdigit() for path in commits.iterdir())


def folded_until(checkpoint: Path) -> int:
    """Return one past the last event that a committed batch has folded; 0 without one.

    Source: Spark's OffsetSeqLog, one line of JSON per source after version and metadata.
    """
    folder = checkpoint / "commits"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    committed = [int(name) for name in names if name.isdigit()]
    if not committed:
        return 0
    line = (checkpoint / "offsets" / str(max(committed))).read_text().splitlines()[2]
    return int(orjson.loads(line)["offset"])


def read_machines(
    spark: SparkSession, checkpoint: Path, batch_id: int | None = None
) -> dict[int, Machine]:
    """Return the machines as of a committed batch, the last one by default, by state key.

    Raises CorruptBlock when a machine's bytes are of another format version.
    """
    spark.streams.active  # noqa: B018 - starts the state store's coordinator, which the reader needs
    reader = spark.read.format("statestore")
    if batch_id is not None:
        reader = reader.option("batchId", batch_id)
    rows = reader.load(str(checkpoint)).select("key.*", "value.*").collect()
    found: dict[int, Machine] = {}
    for row in rows:
        key, data = row[0], _blob(row)
        found[int(key)] = decode_machine(data)
    return dict(sorted(found.items()))


def _blob(row: tuple[object, ...]) -> bytes:
    for value in row[1:]:
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        inner = getattr(value, "data", None)
        if isinstance(inner, (bytes, bytearray)):
            return bytes(inner)
    raise ValueError(f"no machine state in {row!r}")
