"""Folds the shadow's events: through the streaming query, or in this process."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Protocol

from py4j.protocol import Py4JNetworkError

from checkpoints.layout import check_layout
from checkpoints.replay import States
from streaming.decided_rows import FoldedBatch, folded_batch
from streaming.errors import HelmstreamError
from streaming.folding import fold_range
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.replay.decisions import DecisionLog
from streaming.settings import Settings
from streaming.sinks.retention import Retention

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_FOLD_TIMEOUT_S = 120.0
_POLL_S = 0.5
_JVM_GONE = (Py4JNetworkError, ConnectionError)


class FoldingStopped(HelmstreamError):
    """The query ended, or folded nothing for too long."""


class Engine(Protocol):
    """Our machines, with the event log in front of them and the decision log behind."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""

    def decided(self, until: int) -> Iterator[FoldedBatch]:
        """Yield what was decided since the last call, up to an event offset, waiting for it."""

    def close(self) -> None:
        """Stop folding and close the logs."""


class ShadowLogs:
    """Both logs, which keep log.retention.ms and what a retained micro-batch needs, as a
    controller's do.
    """

    def __init__(self, settings: Settings, folders: DataDir) -> None:
        """Open them; raises LogLocked."""
        self._open = ExitStack()
        self.events = self._open.enter_context(
            EmbeddedLogWriter(folders.events, segment_bytes=settings.event_log_segment_bytes)
        )
        self._decisions = self._open.enter_context(DecisionLog(folders.decisions))
        self._retention = Retention(
            folders,
            {folders.decisions: self._decisions.log},
            retention_ms=settings.log_retention_ms,
            batches_retained=settings.checkpoint_batches_retained,
        )
        self._open.callback(self._retention.close)

    def append(self, batch: FoldedBatch) -> None:
        """Append a batch's decisions, and cut what is not kept."""
        self._decisions.append(batch)
        self._retention.folded(batch.end_offset)
        self.events.truncate_before(self._retention.checked())

    def close(self) -> None:
        """Close them."""
        self._open.close()


class LocalEngine:
    """Folds in this process; what an earlier run left in the folder is not folded again."""

    def __init__(self, settings: Settings, folders: DataDir) -> None:
        """Open the logs; raises LogLocked."""
        self._layout = settings.layout
        self._logs = ShadowLogs(settings, folders)
        self._reader = EmbeddedLogReader(folders.events)
        self._states: States = {}
        self._folded = self._logs.events.end_offset()

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""
        return self._logs.events.append(records)

    def decided(self, until: int) -> Iterator[FoldedBatch]:
        """Fold up to an event offset and yield what was decided."""
        events = range(self._folded, until)
        for batch in fold_range(self._states, self._reader, events, self._layout):
            self._logs.append(batch)
            self._folded = batch.end_offset
            yield batch

    def close(self) -> None:
        """Close the logs."""
        self._reader.close()
        self._logs.close()


class SparkEngine:
    """Folds through the job's own query; goes on from the folder's checkpoint."""

    def __init__(
        self, settings: Settings, folders: DataDir, spark: SparkSession | None = None
    ) -> None:
        """Open the logs, start Spark unless a session is given, and the query.

        Raises LogLocked, CheckpointMismatch.
        """
        from streaming.operator import decide  # noqa: PLC0415
        from streaming.query import for_each_batch, read_events, warm_up  # noqa: PLC0415
        from streaming.router import route  # noqa: PLC0415
        from streaming.spark.apart import open_spark_apart  # noqa: PLC0415 - they need Spark

        check_layout(folders.checkpoint, settings.layout, settings.shuffle_partitions)
        self._logs = ShadowLogs(settings, folders)
        self._batches: queue.SimpleQueue[FoldedBatch] = queue.SimpleQueue()
        self._start = self._folded = self._logs.events.end_offset()
        self._own: SparkSession | None = None
        if spark is None:
            with (folders.printed / "spark.log").open("w+b") as printed:
                spark = self._own = open_spark_apart(settings, printed)
        warm_up(spark, settings)
        layout, max_events = settings.layout, settings.event_log_batch_max_events
        decided = decide(route(read_events(spark, folders.events, layout, max_events), layout))
        self._query = for_each_batch(decided, folders.checkpoint, self._take)

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""
        return self._logs.events.append(records)

    def decided(self, until: int) -> Iterator[FoldedBatch]:
        """Yield batches until an event offset is folded; raises FoldingStopped."""
        deadline = time.monotonic() + _FOLD_TIMEOUT_S
        while self._folded < until:
            try:
                batch = self._batches.get(timeout=_POLL_S)
            except queue.Empty:
                self._check_query()
                if time.monotonic() > deadline:
                    raise FoldingStopped(
                        f"event {until - 1} was not folded within {_FOLD_TIMEOUT_S:g} s"
                    ) from None
                continue
            if batch.end_offset > self._start:
                self._folded = batch.end_offset
                yield batch
            deadline = time.monotonic() + _FOLD_TIMEOUT_S

    def close(self) -> None:
        """Stop the query and Spark, close the logs."""
        with suppress(*_JVM_GONE):
            self._query.stop()
            if self._own is not None:
                self._own.stop()
        self._logs.close()

    def _check_query(self) -> None:
        """Raise why the query has ended, if it has."""
        try:
            if self._query.isActive:
                return
            self._query.awaitTermination()
        except _JVM_GONE as error:
            raise FoldingStopped("Spark's JVM has ended: log/spark.log may say why") from error
        raise FoldingStopped("the query has ended")

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        if batch := folded_batch(rows):
            self._logs.append(batch)
            self._batches.put(batch)
