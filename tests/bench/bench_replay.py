"""Replay: events per CPU second, local and through Spark, and what a log, its decisions and the
state take.

Run: python -m tests.bench.bench_replay. TOPICS (of 50 partitions) and EVENTS in the environment
make it smaller. CPU seconds and not the clock are counted, of all processes that took part: a busy
machine changes them little. Both ways must give the same digest.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from checkpoints.machine_format import decode_machine
from checkpoints.snapshot import read_snapshot
from state.groups.slot import GroupSlot
from state.partitions.slot import Slot
from streaming.commands.spark import LazySpark
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.replay.decisions import digest_of
from streaming.replay.local import replay_locally
from streaming.replay.plan import ReplayPlan
from streaming.replay.spark import replay_through_spark
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from tests.bench.recorded_logs import controller_log, group_log
from tests.bench.report import emit, show

TOPICS = int(os.environ.get("TOPICS", "200"))
EVENTS = int(os.environ.get("EVENTS", "10000"))
GROUPS = 500
LOCAL_BATCH = 10_000
WARM_UP_EVENTS = 300


def record(folder: Path, records: Iterable[NewRecord]) -> Path:
    with EmbeddedLogWriter(folder) as writer:
        writer.append(list(records))
    return folder


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.log"))


def cpu_s() -> float:
    """Return CPU seconds of this process and all below it."""
    this = psutil.Process()
    found = [this.cpu_times()]
    for below in this.children(recursive=True):
        try:
            found.append(below.cpu_times())
        except psutil.NoSuchProcess:
            continue
    return sum(times.user + times.system for times in found)


def plan_of(settings: Settings, log: Path, out: Path, *, local: bool, end: int) -> ReplayPlan:
    return ReplayPlan(
        log=log,
        end=end,
        batch=LOCAL_BATCH,
        layout=settings.layout,
        local=local,
        what_if={},
        start=None,
        out=DataDir(out),
    )


def measured(what: str, events: int, fold: Callable[[], None]) -> dict[str, Any]:
    before, began = cpu_s(), time.monotonic()
    fold()
    used, passed = cpu_s() - before, time.monotonic() - began
    line = {"what": what, "events": events, "cpu_s": used, "events_per_cpu_s": events / used}
    return emit("replay", **line, events_per_s=events / passed)


def run(name: str, log: Path, scratch: Path, spark: LazySpark, settings: Settings) -> list[Any]:
    """Replay a log both ways; return the lines."""

    def through_spark(plan: ReplayPlan) -> None:
        replay_through_spark(spark(), settings, plan, reader, lambda _: None)

    with EmbeddedLogReader(log) as reader:
        end = reader.end_offset()
        local = plan_of(settings, log, scratch / f"{name}-local", local=True, end=end)
        query = plan_of(settings, log, scratch / f"{name}-spark", local=False, end=end)
        warm = plan_of(settings, log, scratch / f"{name}-warm", local=False, end=WARM_UP_EVENTS)
        for plan in (local, query, warm):
            plan.claim()
        fold = partial(replay_locally, local, reader, lambda _: None)
        lines = [measured(f"{name}, local", end, fold), sizes(name, log, local)]
        through_spark(warm)
        lines.append(measured(f"{name}, Spark", end, partial(through_spark, query)))
    digests = {digest_of(plan.out.decisions).hexdigest() for plan in (local, query)}
    assert len(digests) == 1, "both ways decide the same"
    return lines


def sizes(name: str, log: Path, plan: ReplayPlan) -> dict[str, Any]:
    """Return bytes per event, and of state per partition or group."""
    partitions = groups = 0
    states = read_snapshot(plan.machines).states
    for data in states.values():
        machine = decode_machine(data)
        if isinstance(machine, Slot):
            partitions += len(machine.table.rows)
        elif isinstance(machine, GroupSlot):
            groups += sum(len(machine.bucket(number).entries) for number in machine.numbers())
    state_bytes = sum(map(len, states.values()))
    line: dict[str, Any] = {
        "what": f"{name}, sizes",
        "log_bytes_per_event": size_of(log) / plan.end,
        "decision_bytes_per_event": size_of(plan.out.decisions) / plan.end,
    }
    if partitions:
        line["state_bytes_per_partition"] = state_bytes / partitions
    if groups:
        line["state_bytes_per_group"] = state_bytes / groups
    return emit("replay", **line)


def main() -> None:
    settings = load_settings((), ["mode=replay"])
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as temporary:
        scratch = Path(temporary)
        logs = {
            "controller": record(scratch / "controller", controller_log(TOPICS, EVENTS)),
            "groups": record(scratch / "groups", group_log(GROUPS, EVENTS)),
        }
        with LazySpark(settings) as spark:
            lines = [
                line
                for name, log in logs.items()
                for line in run(name, log, scratch, spark, settings)
            ]
    show("replay", lines)


if __name__ == "__main__":
    main()
