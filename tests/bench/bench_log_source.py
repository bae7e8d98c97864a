"""Event-to-sink latency of an empty stateful micro-batch over different Spark sources.

Run: python -m tests.bench.bench_log_source [events per source]. One JSON object per line; the ratio
is to a partitioned Python data source in the same run. docs/adr/0002-event-log-source.md has more.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows

from state.routing import Layout
from streaming.log import source
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.source import PARCEL_SCHEMA, HelmstreamLogSource, HelmstreamLogStreamReader

LAYOUT = Layout(8, 16)
WARM_UP = 12
BURST = 10_000
PAYLOAD = b"x" * 200
PHASES = (
    "latestOffset",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)


class RowReader(HelmstreamLogStreamReader):
    """The same reader giving Python tuples, as the documentation of Spark's class has it."""

    def read(self, start):
        batches, end = super().read(start)
        return iter([tuple(row.values()) for batch in batches for row in batch.to_pylist()]), end


class RowSource(HelmstreamLogSource):
    @classmethod
    def name(cls):
        return "rows"

    def simpleStreamReader(self, schema):
        return RowReader(self.options["path"], LAYOUT, 10_000, None)


class LogRange(InputPartition):
    def __init__(self, start, end):
        self.start = start
        self.end = end


class PartitionedReader(DataSourceStreamReader):
    """Plans ranges beside the driver, reads them in a Python worker of the task."""

    def __init__(self, path):
        self.twin = HelmstreamLogStreamReader(path, LAYOUT, 10_000, None)
        self.path = path

    def initialOffset(self):
        return self.twin.initialOffset()

    def getDefaultReadLimit(self):
        return ReadMaxRows(10_000)

    def latestOffset(self, start, limit):
        end = source._reader(self.path).end_offset()
        return {"offset": min(end, start["offset"] + limit.max_rows)}

    def partitions(self, start, end):
        return [LogRange(start, end)] if start != end else []

    def read(self, partition):
        return self.twin.readBetweenOffsets(partition.start, partition.end)


class PartitionedSource(DataSource):
    @classmethod
    def name(cls):
        return "partitioned"

    def schema(self):
        return PARCEL_SCHEMA

    def streamReader(self, schema):
        return PartitionedReader(self.options["path"])


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    manager = "org.apache.spark.sql.execution.streaming.checkpointing"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .config(
            "spark.sql.streaming.checkpointFileManagerClass",
            f"{manager}.FileSystemBasedCheckpointFileManager",
        )
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for class_ in (HelmstreamLogSource, RowSource, PartitionedSource):
        spark.dataSource.register(class_)
    return spark


def events_of(frame):
    """How many events are in the rows of a source."""
    from streaming.log.event_rows import events_in

    return len(events_in(frame["events"])) if "events" in frame else len(frame)


def count(key, frames, state):
    """A state machine that does nothing but count: what is left is the cost of the batch."""
    total = (state.get[0] if state.exists else 0) + sum(map(events_of, frames))
    state.update((total,))
    yield pd.DataFrame({"offset": [total]})


def open_source(spark, name, folder, writer):
    """The stream, and a function that makes events number `first .. until - 1` happen."""
    if name != "file":
        options = {"path": str(folder), "slots": LAYOUT.slots, "group_slots": LAYOUT.group_slots}
        stream = spark.readStream.format(name).options(**options).load()
        return stream, lambda first, until: writer.append(
            [NewRecord("k", f"t{n % 100}", PAYLOAD) for n in range(first, until)]
        )
    files = folder.parent / "files"
    files.mkdir()

    def write(first, until):
        hidden = files / f".{first}"
        hidden.write_bytes(b"".join(PAYLOAD + b"\n" for _ in range(first, until)))
        hidden.rename(files / f"{first}.txt")

    return spark.readStream.text(str(files)), write


class Arrivals:
    """How many events the state machine has counted, as the sink sees it."""

    def __init__(self):
        self.total = 0
        self.changed = threading.Condition()

    def sink(self, batch, _batch_id):
        rows = batch.collect()
        with self.changed:
            self.total = max((row.offset for row in rows), default=self.total)
            self.changed.notify_all()

    def wait_for(self, total):
        with self.changed:
            if not self.changed.wait_for(lambda: self.total >= total, 60):
                raise TimeoutError(f"{self.total} of {total} events arrived")


def measure(spark, name, events):
    """Latencies of single events, of bursts, and the median of each phase of a batch, all in ms."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "log"
        with EmbeddedLogWriter(folder) as writer:
            stream, happen = open_source(spark, name, folder, writer)
            arrivals = Arrivals()
            counted = (
                stream.selectExpr("1 as slot", "*")
                .coalesce(1)
                .groupBy("slot")
                .applyInPandasWithState(count, "offset long", "n long", "update", "NoTimeout")
            )
            query = (
                counted.writeStream.outputMode("update")
                .foreachBatch(arrivals.sink)
                .option("checkpointLocation", f"{temporary}/checkpoint")
                .start()
            )
            try:
                return run(query, happen, arrivals, events)
            finally:
                query.stop()


def run(query, happen, arrivals, events):
    total = 0

    def time_ms(count):
        nonlocal total
        began = time.perf_counter()
        happen(total, total + count)
        total += count
        arrivals.wait_for(total)
        passed_ms = (time.perf_counter() - began) * 1000
        time.sleep(0.06)
        return passed_ms

    for _ in range(WARM_UP):
        time_ms(1)
    singles = [time_ms(1) for _ in range(events)]
    progress = [json.loads(one.json)["durationMs"] for one in query.recentProgress[-events:]]
    phases = {name: statistics.median(one.get(name, 0) for one in progress) for name in PHASES}
    return singles, [time_ms(BURST) for _ in range(4)], phases


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    spark = session()
    names = ("helmstream_log", "rows", "partitioned", "file")
    measure(spark, names[0], events)  # the JVM warms up for all of them
    singles = {name: [] for name in names}
    bursts = {name: [] for name in names}
    phases = {}
    for _round in range(2):  # two rounds, so that what else the machine does is spread
        for name in names:
            measured, burst, phases[name] = measure(spark, name, events // 2)
            singles[name].extend(measured)
            bursts[name].extend(burst)
    base_ms = statistics.median(singles["partitioned"])
    burst_base_ms = statistics.median(bursts["partitioned"])
    for name in names:
        p50_ms = statistics.median(singles[name])
        burst_ms = statistics.median(bursts[name])
        line = {
            "bench": "log_source",
            "source": name,
            "p50_ms": round(p50_ms, 1),
            "p90_ms": round(sorted(singles[name])[int(len(singles[name]) * 0.9)], 1),
            "ratio_to_partitioned": round(p50_ms / base_ms, 2),
            f"burst_{BURST}_ms": round(burst_ms, 1),
            "burst_ratio_to_partitioned": round(burst_ms / burst_base_ms, 2),
            "phases_ms": phases[name],
        }
        sys.stdout.write(json.dumps(line) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
