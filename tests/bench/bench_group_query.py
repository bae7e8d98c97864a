"""What consumer groups cost in the real query: ms of a micro-batch by the number of group slots.

Groups are loaded, then batches that concern some of them are appended, one after the other; the
time is Spark's own for a batch (triggerExecution), which has reading, folding, writing the states
and one action in it. GROUPS in the environment makes it smaller.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from state.events import Event
from state.routing import Layout
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.operator import decide
from streaming.query import discard_batch, for_each_batch, read_events
from streaming.router import route
from streaming.settings_loader import load_settings
from streaming.spark.local_fs import local_fs_jar
from streaming.spark.session import open_spark
from tests.bench.bench_group_state import Log, commits, heartbeats, observed
from tests.bench.report import emit, show

GROUPS = int(os.environ.get("GROUPS", "20000"))
SHAPES = (16, 64, 512, 4096)
CONCERNED = (1, 20, 200)
CYCLES = 5
CHUNK = 5_000


def names() -> list[str]:
    return [f"consumer-group-{number}" for number in range(GROUPS)]


def records(events: list[Event]) -> list[NewRecord]:
    return [NewRecord(one.kind, one.key, one.payload) for one in events]


def loading(log: Log) -> list[Event]:
    return [
        log.event("group_partitions_elected", "", {"partitions": [0], "epoch": 1}),
        *(log.event("group_observed", name, observed(name)) for name in names()),
        log.event("group_partitions_loaded", "", {"partitions": [0], "epoch": 1}),
    ]


def measure(slots: int) -> list[dict[str, object]]:
    """Run one query and return a line for each sort of batch."""
    lines = []
    log = Log()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = load_settings((), [f"data.dir={folder}", f"group.slots={slots}"], {})
        spark = open_spark(settings, local_fs_jar())
        with EmbeddedLogWriter(folder / "events") as writer:
            layout, max_events = Layout(1, slots), settings.event_log_batch_max_events
            events = read_events(spark, folder / "events", layout, max_events)
            decisions = decide(route(events, layout))
            query = for_each_batch(decisions, folder / "checkpoint", discard_batch)
            start = loading(log)
            for at in range(0, len(start), CHUNK):
                writer.append(records(start[at : at + CHUNK]))
                query.processAllAvailable()
            for concerned in CONCERNED:
                groups = names()[:: GROUPS // concerned][:concerned]
                for what, make in (("heartbeats", heartbeats), ("commits", commits)):
                    times = []
                    for _ in range(CYCLES):
                        writer.append(records(make(log, groups)))
                        query.processAllAvailable()
                        times.append(query.lastProgress.durationMs["triggerExecution"])
                    lines.append(
                        emit(
                            "group_query",
                            groups=GROUPS,
                            slots=slots,
                            batch=f"{what} of {concerned} groups",
                            fastest_ms=min(times),
                            median_ms=sorted(times)[CYCLES // 2],
                        )
                    )
            query.stop()
        spark.stop()
    return lines


def main() -> int:
    lines = [line for slots in SHAPES for line in measure(slots)]
    show("Consumer groups in the query", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
