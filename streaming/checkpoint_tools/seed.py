"""Makes a streaming checkpoint out of a snapshot of machines.

A query of the same shape as the job's runs one batch in which every machine takes over its state,
and ends at the snapshot's offset. The job then goes on from that checkpoint as from its own, with
any number of slots and shuffle partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import StructType

from checkpoints.layout import CheckpointMismatch, check_layout
from checkpoints.packing import packed
from checkpoints.snapshot import Snapshot, read_snapshot
from streaming.operator import decide
from streaming.query import discard_batch, for_each_batch
from streaming.router import KEY
from streaming.settings import Settings

SOURCE_NAME = "helmstream_snapshot"
_SCHEMA = pa.schema([(KEY, pa.int32()), ("state", pa.binary())])
_BEFORE = {"offset": -1}


class SnapshotSource(DataSource):
    """A snapshot's machines as the one batch of a stream; option `path` is the file."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> str:
        return f"{KEY} int, state binary"

    def simpleStreamReader(self, schema: StructType) -> SnapshotStreamReader:
        return SnapshotStreamReader(str(self.options["path"]))


class SnapshotStreamReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are those of the event log: -1 before the batch, the snapshot's after it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, int]:
        return _BEFORE

    def prepareForTriggerAvailableNow(self) -> None:
        """Nothing to prepare: a snapshot does not grow."""

    def read(self, start: dict[str, int]) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
        """The whole snapshot, once."""
        if start != _BEFORE:
            return iter(()), start
        snapshot = read_snapshot(Path(self._path))
        return iter(_rows(snapshot)), {"offset": snapshot.offset}

    def readBetweenOffsets(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[pa.RecordBatch]:
        return iter(_rows(read_snapshot(Path(self._path))))


def seed_checkpoint(
    spark: SparkSession, settings: Settings, snapshot: Path, checkpoint: Path
) -> None:
    """Write a new checkpoint with the machines of a snapshot file.

    The snapshot has the slots of the settings. Raises CheckpointMismatch when it has others, or
    when the checkpoint's folder is not empty.
    """
    found = read_snapshot(snapshot)
    given, wanted = astuple(found.layout), astuple(settings.layout)
    if given != wanted:
        raise CheckpointMismatch(
            f"{snapshot} has slots, group.slots = {given}, wanted are {wanted}"
        )
    if checkpoint.exists() and any(checkpoint.iterdir()):
        raise CheckpointMismatch(f"the folder {checkpoint} for the new checkpoint is not empty")
    spark.dataSource.register(SnapshotSource)
    spark.conf.set("spark.sql.shuffle.partitions", settings.shuffle_partitions)
    machines = spark.readStream.format(SOURCE_NAME).option("path", str(snapshot)).load()
    query = for_each_batch(decide(machines, take_over), checkpoint, discard_batch, until_end=True)
    query.awaitTermination()
    check_layout(checkpoint, settings.layout, settings.shuffle_partitions)


def take_over(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Make a machine's state what the snapshot has; decide nothing."""
    for frame in frames:
        for data in frame["state"]:
            state.update((packed(bytes(data)),))
    nothing: dict[str, list[object]] = {"said": []}
    yield pd.DataFrame(nothing)


def _rows(snapshot: Snapshot) -> list[pa.RecordBatch]:
    keys, states = list(snapshot.states), list(snapshot.states.values())
    return [pa.record_batch([keys, states], schema=_SCHEMA)] if keys else []
