"""The Spark data source `helmstream_log`: a log as a streaming DataFrame.

Options: `path` (the log's folder, or a topic's URL), `max_events_per_batch`, `start_offset` (of a
query without a checkpoint; the first retained offset unless given), `end_offset` (where to stop;
without it the query follows the log), `what_if` (settings to change in the events, as JSON),
`slots` and `group_slots` (the query's). With these a row is a parcel of the events that the same
machines fold; which these are is a column, so that the router needs no Python of its own. Without
them, for who reads a log in a query of another kind, a row is a record.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import orjson
import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from checkpoints.what_if import Setting, rewritten
from state.routing import Layout, narrowed, scope
from streaming.log.api import LogError, LogReader
from streaming.log.embedded_reader import EmbeddedLogReader
from streaming.log.event_rows import EventRow, parcel
from streaming.log.location import KafkaTopic, log_location

SOURCE_NAME = "helmstream_log"
PARCEL_SCHEMA = "scope long, events binary"
RECORD_SCHEMA = "offset long, time_ms long, kind string, key string, payload binary"
MAX_EVENTS_PER_BATCH = 10_000
LOG_CLUSTER_TIMEOUT_MS = 30_000
"""How long a batch waits for a log cluster that is away before the query fails."""

MAX_BATCH_BYTES = 64 * 1024 * 1024
"""Where a batch ends before it has its number of events: it passes through the driver's memory."""

GATHER_S = 0.02
GATHER_STEP_S = 0.004
"""How long a batch waits for more at most, while events come in each step of it. Members of a group
join within milliseconds, as brokers fail: one batch decides all of it sooner than a batch for the
first and another for the rest.
"""

LONG_POLL_S = (0.25, 1.0)
"""How long a query waits here for events, at first and after it has waited in vain for long: Spark
asks again as soon as it is told that there are none, through several processes.
"""

_ROW_BYTES = 40
"""What counts for a record beside its payload."""

_PARCELS = pa.schema([("scope", pa.int64()), ("events", pa.binary())])
_RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("payload", pa.binary()),
    ]
)
_scope = lru_cache(maxsize=1 << 16)(scope)


class HelmstreamLogSource(DataSource):
    """Register with `spark.dataSource.register(HelmstreamLogSource)`."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> str:
        return RECORD_SCHEMA if self._layout() is None else PARCEL_SCHEMA

    def simpleStreamReader(self, schema: StructType) -> HelmstreamLogStreamReader:
        path = self.options.get("path")
        if not path:
            raise ValueError(
                f"{SOURCE_NAME} needs the option 'path': the folder of the log or its URL"
            )
        return HelmstreamLogStreamReader(
            path,
            self._layout(),
            int(self.options.get("max_events_per_batch", MAX_EVENTS_PER_BATCH)),
            self._offset("start_offset"),
            end_offset=self._offset("end_offset"),
            what_if=orjson.loads(self.options.get("what_if", "{}")),
        )

    def _layout(self) -> Layout | None:
        slots, group_slots = self.options.get("slots"), self.options.get("group_slots")
        if slots is None and group_slots is None:
            return None
        if slots is None or group_slots is None:
            raise ValueError(f"{SOURCE_NAME} needs both of 'slots' and 'group_slots', or neither")
        return Layout(int(slots), int(group_slots))

    def _offset(self, option: str) -> int | None:
        given = self.options.get(option)
        return None if given is None else int(given)


class HelmstreamLogStreamReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new batches beside the driver, and batches that are run again in a worker.

    A new batch goes from here to the task through Spark's block manager, which saves the task a
    Python worker of its own; docs/adr/0002-event-log-source.md has the measurements. Iterators of
    batches are those of lists, since Spark copies them.

    layout: of the query that takes parcels; None for records.

    Raises:
        ValueError: `max_events_per_batch` is not positive.
    """

    def __init__(
        self,
        path: str,
        layout: Layout | None,
        max_events_per_batch: int,
        start_offset: int | None,
        *,
        end_offset: int | None = None,
        what_if: Mapping[str, Setting] | None = None,
    ) -> None:
        if max_events_per_batch <= 0:
            raise ValueError(f"max_events_per_batch={max_events_per_batch} is not positive")
        self._path = path
        self._layout = layout
        self._max_events = max_events_per_batch
        self._start_offset = start_offset
        self._stop_at = end_offset
        self._what_if = what_if or {}
        self._long_poll_s = LONG_POLL_S[0]

    def initialOffset(self) -> dict[str, int]:
        if self._start_offset is not None:
            return {"offset": self._start_offset}
        return {"offset": _reader(self._path).start_offset()}

    def prepareForTriggerAvailableNow(self) -> None:
        end = _reader(self._path).end_offset()
        self._stop_at = end if self._stop_at is None else min(self._stop_at, end)

    def read(self, start: dict[str, int]) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
        """The next batch and where it ends; `start` again when nothing new comes for a moment.

        Raises:
            LogError: the query is ahead of the log: it is another log, or has lost its end.
            OffsetOutOfRange: retention has taken what the query needs next.
        """
        first = start["offset"]
        end = self._end_beyond(first)
        if first > end:
            raise LogError(f"{self._path} ends at offset {end}, the query goes on from {first}")
        end = min(end, first + self._max_events)
        if self._stop_at is not None:
            end = max(first, min(end, self._stop_at))
        if first == end:
            return iter(()), start
        rows: list[EventRow] = []
        size_bytes = 0
        for chunk in self._rows(first, end):
            rows += chunk
            size_bytes += sum(len(payload) + _ROW_BYTES for *_, payload in chunk)
            if size_bytes >= MAX_BATCH_BYTES:
                break
        return iter([self._batch(rows)]), {"offset": first + len(rows)}

    def _end_beyond(self, first: int) -> int:
        """Return the log's end: waited for when it is not beyond `first` yet, and once it is, while
        it goes on to grow.
        """
        reader = _reader(self._path)
        if self._stop_at is not None:
            return reader.end_offset()
        end = reader.wait_beyond(first, self._long_poll_s)
        shortest_s, longest_s = LONG_POLL_S
        self._long_poll_s = min(self._long_poll_s * 2, longest_s) if end == first else shortest_s
        before, deadline = first, time.monotonic() + GATHER_S
        while before < end and time.monotonic() < deadline:
            before = end
            time.sleep(GATHER_STEP_S)
            end = reader.end_offset()
        return end

    def readBetweenOffsets(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[pa.RecordBatch]:
        rows = [row for chunk in self._rows(start["offset"], end["offset"]) for row in chunk]
        return iter([self._batch(rows)])

    def open(self) -> None:
        """Reach the log, which reading does too; for who reads without Spark.

        Raises:
            LogUnavailable: the log cluster cannot be reached in time.
        """
        _reader(self._path)

    def close(self) -> None:
        """Follow the log no more; for who reads without Spark. Another one of this process may go
        on with the reader that they share.
        """
        _reader(self._path).rest()

    def _rows(self, start: int, end: int) -> Iterator[list[EventRow]]:
        chunks = _reader(self._path).event_rows(start, end)
        if self._what_if:
            return (_rewritten(rows, self._what_if) for rows in chunks)
        return chunks

    def _batch(self, rows: Sequence[EventRow]) -> pa.RecordBatch:
        if self._layout is None:
            return pa.record_batch([*zip(*rows, strict=True)], schema=_RECORDS)
        return _parcels(rows, self._layout)


class RowReader(LogReader, Protocol):
    """A reader that gives plain rows too."""

    def event_rows(self, start: int, end: int) -> Iterator[list[EventRow]]:
        """As `read`, a chunk of rows at a time."""

    def wait_beyond(self, offset: int, timeout_s: float) -> int:
        """Return the end: once it is not `offset`, at the latest after `timeout_s`."""

    def rest(self) -> None:
        """Do nothing more by itself until the end is asked for again."""


@lru_cache(maxsize=8)
def _reader(path: str) -> RowReader:
    """One reader per log and Python process: the next batch goes on where the last one ended."""
    where = log_location(path)
    if isinstance(where, KafkaTopic):
        # Workers start sooner without this import.
        from streaming.log.kafka_tail import KafkaTail  # noqa: PLC0415

        return KafkaTail(where, LOG_CLUSTER_TIMEOUT_MS)
    return EmbeddedLogReader(where)


def _parcels(rows: Iterable[EventRow], layout: Layout) -> pa.RecordBatch:
    """Return a row for each set of machines that events are for."""
    by_scope: dict[int, list[EventRow]] = {}
    for row in rows:
        by_scope.setdefault(narrowed(_scope(row[2], row[3]), layout), []).append(row)
    scopes = pa.array(by_scope, pa.int64(), size=len(by_scope))
    parcels = pa.array(map(parcel, by_scope.values()), pa.binary(), size=len(by_scope))
    return pa.RecordBatch.from_arrays([scopes, parcels], schema=_PARCELS)


def _rewritten(rows: Iterable[EventRow], what_if: Mapping[str, Setting]) -> list[EventRow]:
    return [
        (offset, time_ms, kind, key, rewritten(kind, payload, what_if))
        for offset, time_ms, kind, key, payload in rows
    ]
