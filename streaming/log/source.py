"""The Spark data source `helmstream_log`: an embedded log as a streaming DataFrame.

Options: `path` (the log's folder), `max_events_per_batch`, `start_offset` (of a query without a
checkpoint; the first retained offset unless given). Which machines fold an event is a column, so
that the router needs no Python of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from state.routing import scope
from streaming.log.api import LogError
from streaming.log.embedded_arrow import LOG_SCHEMA
from streaming.log.embedded_reader import EmbeddedLogReader

SOURCE_NAME = "helmstream_log"
SOURCE_SCHEMA = "offset long, time_ms long, kind string, key string, scope long, payload binary"
MAX_EVENTS_PER_BATCH = 10_000

_SCOPE_AT = LOG_SCHEMA.get_field_index("payload")
_BATCH_SCHEMA = LOG_SCHEMA.insert(_SCOPE_AT, pa.field("scope", pa.int64()))
_scope = lru_cache(maxsize=1 << 16)(scope)


@dataclass(frozen=True, slots=True)
class LogRange(InputPartition):
    """The part of a log that one task reads: `[start, end)`."""

    start: int
    end: int


class HelmstreamLogSource(DataSource):
    """Register with `spark.dataSource.register(HelmstreamLogSource)`."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> str:
        return SOURCE_SCHEMA

    def streamReader(self, schema: StructType) -> HelmstreamLogStreamReader:
        path = self.options.get("path")
        if not path:
            raise ValueError(f"{SOURCE_NAME} needs the option 'path': the folder of the log")
        start_offset = self.options.get("start_offset")
        return HelmstreamLogStreamReader(
            path,
            int(self.options.get("max_events_per_batch", MAX_EVENTS_PER_BATCH)),
            None if start_offset is None else int(start_offset),
        )


class HelmstreamLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver's side, reads them in the workers; holds no open file itself.

    A batch is one partition: its order is the log's, and one shuffle follows anyway.

    Raises:
        ValueError: `max_events_per_batch` is not positive.
    """

    def __init__(self, path: str, max_events_per_batch: int, start_offset: int | None) -> None:
        if max_events_per_batch <= 0:
            raise ValueError(f"max_events_per_batch={max_events_per_batch} is not positive")
        self._path = path
        self._max_events = max_events_per_batch
        self._start_offset = start_offset
        self._stop_at: int | None = None

    def initialOffset(self) -> dict[str, int]:
        if self._start_offset is not None:
            return {"offset": self._start_offset}
        return {"offset": _reader(self._path).start_offset()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next batch, at most the limit's rows after `start`.

        Raises:
            LogError: the query is ahead of the log: it is another log, or has lost its end.
        """
        first = start["offset"]
        end = _reader(self._path).end_offset()
        if first > end:
            raise LogError(f"{self._path} ends at offset {end}, the query goes on from {first}")
        if self._stop_at is not None:
            end = max(first, min(end, self._stop_at))
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return {"offset": end}

    def reportLatestOffset(self) -> dict[str, int]:
        return {"offset": _reader(self._path).end_offset()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._stop_at = _reader(self._path).end_offset()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[LogRange]:
        log_range = LogRange(start["offset"], end["offset"])
        return [log_range] if log_range.start < log_range.end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogRange)
        for batch in _reader(self._path).arrow_batches(partition.start, partition.end):
            yield _with_scope(batch)


@lru_cache(maxsize=8)
def _reader(path: str) -> EmbeddedLogReader:
    """One reader per log and Python process: the next batch goes on where the last one ended."""
    return EmbeddedLogReader(path)


def _with_scope(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds, keys = batch.column("kind").to_pylist(), batch.column("key").to_pylist()
    scopes = pa.array(map(_scope, kinds, keys), pa.int64(), size=batch.num_rows)
    columns = batch.columns
    columns.insert(_SCOPE_AT, scopes)
    return pa.RecordBatch.from_arrays(columns, schema=_BATCH_SCHEMA)
