"""Replay through the streaming query itself: the job's source, router and operator."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.layout import check_layout
from checkpoints.read import folded_until, has_state
from checkpoints.snapshot import Snapshot, write_snapshot
from streaming.checkpoint_tools.seed import seed_checkpoint
from streaming.checkpoint_tools.snapshots import MACHINES_FILE
from streaming.decided_rows import folded_batch
from streaming.errors import ConfigurationError
from streaming.log.api import LogReader
from streaming.log.copying import copy_records
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.location import KafkaTopic, LogLocation
from streaming.log.recorded import log_folder
from streaming.operator import decide
from streaming.query import for_each_batch, read_events
from streaming.replay.decisions import DecisionLog, Progress
from streaming.replay.plan import ReplayPlan
from streaming.router import route
from streaming.settings import Settings

_POLL_S = 0.2


def replay_through_spark(
    spark: SparkSession,
    settings: Settings,
    plan: ReplayPlan,
    reader: LogReader,
    progress: Progress,
) -> None:
    """Run the query over the log up to the plan's end; one that was interrupted goes on from its
    checkpoint.

    Raises ConfigurationError when the folder's replay is past the plan's end, CheckpointMismatch
    when its checkpoint was made with other settings.
    """
    checkpoint = plan.out.checkpoint
    if not has_state(checkpoint) and (start := plan.beginning()) is not None:
        _seed(spark, settings, start, checkpoint)
    check_layout(checkpoint, plan.layout, settings.shuffle_partitions)
    folded = folded_until(checkpoint)
    if folded > plan.end:
        raise ConfigurationError(f"{plan.out.root} has folded up to {folded}, not {plan.end}")
    progress(folded or reader.start_offset())
    spark.conf.set("spark.sql.shuffle.partitions", settings.shuffle_partitions)
    log = _for_source(plan, reader)
    with DecisionLog(plan.out.decisions) as decisions:
        _follow(_start(spark, plan, log, decisions, progress))


def _seed(spark: SparkSession, settings: Settings, start: Snapshot, checkpoint: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / MACHINES_FILE
        write_snapshot(file, start)
        seed_checkpoint(spark, settings, file, checkpoint)


def _for_source(plan: ReplayPlan, reader: LogReader) -> LogLocation:
    """Return where the log is for Spark's source; a file is copied into the replay's folder."""
    if isinstance(plan.log, KafkaTopic):
        return plan.log
    if isinstance(reader, EmbeddedLogReader):
        return log_folder(plan.log, "events")
    with EmbeddedLogWriter(plan.out.events, first_offset=reader.start_offset()) as copy:
        copy_records(reader, copy)
    return plan.out.events


def _start(
    spark: SparkSession,
    plan: ReplayPlan,
    log: LogLocation,
    decisions: DecisionLog,
    progress: Progress,
) -> StreamingQuery:
    events = read_events(spark, log, plan.layout, plan.batch, end=plan.end, what_if=plan.what_if)
    decided = decide(route(events, plan.layout))

    def take(batch_id: int, rows: pa.Table) -> None:
        if batch := folded_batch(rows):
            decisions.append(batch)
            progress(batch.end_offset)

    return for_each_batch(decided, plan.out.checkpoint, take, until_end=True)


def _follow(query: StreamingQuery) -> None:
    """Wait for the end, in steps so that Ctrl-C is heard; raises the query's error."""
    pause = threading.Event()
    try:
        while query.isActive:
            pause.wait(_POLL_S)
        query.awaitTermination()
    finally:
        query.stop()
