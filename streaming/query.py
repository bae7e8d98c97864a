"""The streaming query as everyone runs it: a log as a stream, and what takes its micro-batches.

Between the two are `streaming.router.route` and `streaming.operator.decide`. The job, replay and
the shadow differ in what they read and in who takes the batches.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.what_if import Setting
from state.routing import Layout
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.location import LogLocation
from streaming.log.source import SOURCE_NAME
from streaming.operator import decide
from streaming.paths import DataDir
from streaming.router import route
from streaming.settings import Settings
from streaming.spark.conf import is_local

logger = logging.getLogger(__name__)

ProcessBatch = Callable[[int, pa.Table], None]
"""Called with the number of a micro-batch and its rows."""

_WARM_UP_TIMEOUT_S = 60


def read_events(
    spark: SparkSession,
    log: LogLocation,
    layout: Layout,
    batch_max_events: int,
    *,
    first: int | None = None,
    end: int | None = None,
    what_if: Mapping[str, Setting] | None = None,
) -> DataFrame:
    """Return an event log as a stream of parcels for the machines of a layout.

    first: where it begins unless a checkpoint says so, the log's start by default. end: where it
    ends; without it the log is followed. what_if: settings to change in the events
    (`checkpoints.what_if`).
    """
    reader = spark.readStream.format(SOURCE_NAME).option("path", str(log))
    reader = reader.option("max_events_per_batch", batch_max_events)
    reader = reader.option("slots", layout.slots).option("group_slots", layout.group_slots)
    if first is not None:
        reader = reader.option("start_offset", first)
    if end is not None:
        reader = reader.option("end_offset", end)
    if what_if:
        reader = reader.option("what_if", orjson.dumps(dict(what_if)).decode())
    return reader.load()


def for_each_batch(
    decisions: DataFrame, checkpoint: Path, process_batch: ProcessBatch, *, until_end: bool = False
) -> StreamingQuery:
    """Start the query that hands the decisions of each micro-batch to `process_batch`, after
    exactly one action on them; what that raises ends the query.

    until_end: it ends where its source ends by then.
    """

    def process(rows: DataFrame, batch_id: int) -> None:
        process_batch(batch_id, rows.toArrow())

    writer = decisions.writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint)).foreachBatch(process)
    return (writer.trigger(availableNow=True) if until_end else writer).start()


def discard_batch(batch_id: int, rows: pa.Table) -> None:
    """Take a batch and do nothing with it."""


def warm_up(spark: SparkSession, settings: Settings) -> None:
    """Run one batch of the query on a log of its own, so that code is compiled and workers wait.

    On a machine so busy that it fails, the job starts cold.
    """
    # Executors elsewhere see no folder of this machine but the data folder.
    master = spark.sparkContext.getConf().get("spark.master", "local")
    place = None if is_local(master) else settings.data_dir
    with tempfile.TemporaryDirectory(
        prefix="warm-up-", dir=place, ignore_cleanup_errors=True
    ) as scratch:
        trial = DataDir(Path(scratch))
        with EmbeddedLogWriter(trial.events) as log:
            log.append([NewRecord("warm_up", "", b"{}")])
        layout, max_events = settings.layout, settings.event_log_batch_max_events
        decisions = decide(route(read_events(spark, trial.events, layout, max_events), layout))
        query = for_each_batch(decisions, trial.checkpoint, discard_batch, until_end=True)
        try:
            query.awaitTermination(_WARM_UP_TIMEOUT_S)
        except StreamingQueryException as error:
            logger.warning("the query could not be warmed up: %s", error.getMessage())
        finally:
            query.stop()
