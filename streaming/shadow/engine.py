"""Folds the shadow's events: through the streaming query, or in this process."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from checkpoints.layout import check_layout
from checkpoints.replay import States, fold_batch
from streaming.errors import HelmstreamError
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.replay.decisions import DecisionLog
from streaming.settings import Settings
from streaming.sinks.batch import DecidedBatch, decided_batch, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLD_TIMEOUT_S = 120.0
_POLL_S = 0.5


class FoldingStopped(HelmstreamError):
    """The query ended, or folded nothing for too long."""


class Engine(Protocol):
    """Our machines, with the event log in front of them and the decision log behind."""

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""

    def decided(self, until: int) -> Iterator[DecidedBatch]:
        """Yield what was decided since the last call, up to an event offset, waiting for it."""

    def close(self) -> None:
        """Stop folding and close the logs."""


def _event_log(settings: Settings, folders: DataDir) -> EmbeddedLogWriter:
    return EmbeddedLogWriter(folders.events, segment_bytes=settings.event_log_segment_bytes)


class LocalEngine:
    """Folds in this process; what an earlier run left in the folder is not folded again."""

    def __init__(self, settings: Settings, folders: DataDir) -> None:
        """Open the logs; raises LogLocked."""
        self._slots = settings.slots
        self._open = ExitStack()
        self._events = self._open.enter_context(_event_log(settings, folders))
        self._reader = self._open.enter_context(EmbeddedLogReader(folders.events))
        self._log = self._open.enter_context(DecisionLog(folders.decisions))
        self._states: States = {}
        self._folded = self._events.end_offset()
        self._batches = 0

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""
        return self._events.append(records)

    def decided(self, until: int) -> Iterator[DecidedBatch]:
        """Fold up to an event offset and yield what was decided."""
        records = list(self._reader.read(self._folded, until))
        if not records:
            return
        events = [one.as_event() for one in records]
        merged = fold_batch(self._states, events, self._slots)
        times = {event.offset: event.time_ms for event in events}
        self._log.append(merged, times)
        self._folded = until
        self._batches += 1
        yield DecidedBatch(self._batches, opened(merged), times, until)

    def close(self) -> None:
        """Close the logs."""
        self._open.close()


class SparkEngine:
    """Folds through the job's own query; goes on from the folder's checkpoint."""

    def __init__(
        self, settings: Settings, folders: DataDir, spark: SparkSession | None = None
    ) -> None:
        """Open the logs, start Spark unless a session is given, and the query.

        Raises LogLocked, CheckpointMismatch.
        """
        from streaming.job import read_events, warm_up  # noqa: PLC0415 - they need Spark
        from streaming.local_fs import local_fs_jar  # noqa: PLC0415
        from streaming.operator import decide  # noqa: PLC0415
        from streaming.router import route  # noqa: PLC0415
        from streaming.spark_session import open_spark  # noqa: PLC0415

        check_layout(
            folders.checkpoint, slots=settings.slots, partitions=settings.shuffle_partitions
        )
        self._open = ExitStack()
        self._events = self._open.enter_context(_event_log(settings, folders))
        self._log = self._open.enter_context(DecisionLog(folders.decisions))
        self._batches: queue.SimpleQueue[DecidedBatch] = queue.SimpleQueue()
        self._start = self._folded = self._events.end_offset()
        session = spark or open_spark(settings, local_fs_jar())
        self._own = None if spark is not None else session
        warm_up(session, settings)
        events = read_events(session, settings, folders.events)
        self._query = (
            decide(route(events, settings.slots))
            .writeStream.outputMode("append")
            .option("checkpointLocation", str(folders.checkpoint))
            .foreachBatch(self._take)
            .start()
        )

    def append(self, records: Sequence[NewRecord]) -> range:
        """Append events and return their offsets, durable."""
        return self._events.append(records)

    def decided(self, until: int) -> Iterator[DecidedBatch]:
        """Yield batches until an event offset is folded; raises FoldingStopped."""
        deadline = time.monotonic() + _FOLD_TIMEOUT_S
        while self._folded < until:
            try:
                batch = self._batches.get(timeout=_POLL_S)
            except queue.Empty:
                if not self._query.isActive:
                    self._query.awaitTermination()
                    raise FoldingStopped("the query has ended") from None
                if time.monotonic() > deadline:
                    raise FoldingStopped(
                        f"event {until - 1} was not folded within {_FOLD_TIMEOUT_S:g} s"
                    ) from None
                continue
            if (batch.end_offset or 0) > self._start:
                self._folded = batch.end_offset or self._folded
                yield batch

    def close(self) -> None:
        """Stop the query and Spark, close the logs."""
        self._query.stop()
        if self._own is not None:
            self._own.stop()
        self._open.close()

    def _take(self, decisions: DataFrame, batch_id: int) -> None:
        batch = decided_batch(batch_id, decisions.toArrow())
        self._log.append([one.id for one in batch.decisions], batch.time_ms)
        self._batches.put(batch)
