"""The real query over a recorded log, with sinks that only keep what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from checkpoints.machine_format import encode_machine
from checkpoints.read import read_machines
from state.events import Event
from state.merge import MergedDecision
from streaming.decided_rows import folded_batch
from streaming.job import start_query
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.sinks.batch import DecidedBatch, decided_batch

BATCH_EVENTS = 40


def settings_of(data_dir: Path, **chosen: object) -> Settings:
    values = {"data.dir": data_dir, "slots": 4, "shuffle.partitions": 1, **chosen}
    values |= {"event.log.batch.max.events": chosen.get("cap", BATCH_EVENTS)}
    values.pop("cap", None)
    return load_settings((), [f"{key}={value}" for key, value in values.items()], {})


def recorded(data_dir: Path, log: list[Event]) -> DataDir:
    folders = DataDir(data_dir)
    with EmbeddedLogWriter(folders.events) as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    return folders


class Recorder:
    """Only keeps what it is given; it may fail in a batch, as a kill would."""

    def __init__(self, fail_in: int | None = None) -> None:
        self.batches: dict[int, DecidedBatch] = {}
        self.fail_in = fail_in

    def process(self, batch_id: int, rows: Any) -> None:
        assert batch_id not in self.batches
        if (folded := folded_batch(rows)) is not None:
            self.batches[batch_id] = decided_batch(batch_id, folded)
        if batch_id == self.fail_in:
            raise RuntimeError("killed in the middle of a batch")

    def decisions(self) -> list[MergedDecision]:
        return [one.merged for _, batch in sorted(self.batches.items()) for one in batch.decisions]


class Run:
    """Queries over one data folder, with the job's own functions."""

    def __init__(self, spark: Any, data_dir: Path, log: list[Event], **chosen: object) -> None:
        self.spark = spark
        self.settings = settings_of(data_dir, **chosen)
        self.folders = recorded(data_dir, log)
        spark.conf.set("spark.sql.shuffle.partitions", self.settings.shuffle_partitions)

    def until_done(self, recorder: Recorder) -> Recorder:
        """Fold everything that is in the log."""
        query = start_query(self.spark, self.settings, self.folders, recorder.process)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return recorder

    def states(self) -> dict[int, bytes]:
        machines = read_machines(self.spark, self.folders.checkpoint)
        return {key: encode_machine(machine) for key, machine in machines.items()}
