"""The yardstick: a stateful micro-batch that decides nothing, with the settings of the job.

Log source, router, applyInPandasWithState whose function only says how far it has folded,
foreachBatch with one action. A worker (tests.bench.worker), so that it can be measured in turns
with the real system: `measure` appends events one at a time and returns, for each, the ms from its
time in the log to the end of the batch's action.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from streaming.decided_rows import folded_batch, said
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.event_rows import events_in
from streaming.operator import decide
from streaming.query import for_each_batch, read_events
from streaming.router import route
from streaming.settings_loader import load_settings
from streaming.spark.local_fs import local_fs_jar
from streaming.spark.session import open_spark
from tests.bench.worker import open_answers, serve

ONE_MACHINE = NewRecord("alter_partition_requested", "a-topic", b"{}")
ALL_MACHINES = NewRecord("resync_completed", "", b"{}")
_BATCH_TIMEOUT_S = 300


def fold_nothing(
    key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    events = events_in(parcel for frame in frames for parcel in frame["events"])
    state.update((events[-1].offset.to_bytes(8, "big"),))
    yield pd.DataFrame({"said": [said(events, [])]})


class EmptyQuery:
    """The query and the log it reads."""

    def __init__(self, folder: Path, overrides: list[str]) -> None:
        settings = load_settings((), [*overrides, f"data.dir={folder}"])
        self._writer = EmbeddedLogWriter(folder / "events")
        self._latencies_ms: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._spark = open_spark(settings, local_fs_jar())
        max_events = settings.event_log_batch_max_events
        events = read_events(self._spark, folder / "events", settings.layout, max_events)
        folded = decide(route(events, settings.layout), fold_nothing)
        self._query = for_each_batch(folded, folder / "checkpoint", self._take)

    def _take(self, batch_id: int, rows: pa.Table) -> None:
        batch = folded_batch(rows)
        if batch is not None:  # a query's first batch has no events
            self._latencies_ms.put(time.time_ns() / 1e6 - batch.time_ms[batch.end_offset - 1])

    def measure(self, events: int, pause_ms: int, all_machines: bool = False) -> list[float]:
        found = []
        for _ in range(events):
            time.sleep(pause_ms / 1000)
            self._writer.append([ALL_MACHINES if all_machines else ONE_MACHINE])
            found.append(self._latencies_ms.get(timeout=_BATCH_TIMEOUT_S))
        return found

    def close(self) -> None:
        self._query.stop()
        self._spark.stop()
        self._writer.close()


def main() -> None:
    answer = open_answers()
    query = EmptyQuery(Path(sys.argv[1]), sys.argv[2:])
    try:
        serve({"measure": query.measure}, answer)
    finally:
        query.close()


if __name__ == "__main__":
    main()
