"""`make bench-groups RUNS=3`: Kafka's own coordinator and helmstream under the same load, in turns.

JSON lines go to stdout, a table with ratios to stderr. The load generator, in this process, speaks
the group protocol to any coordinator: `ARGS="--systems kafka helmstream folding"` chooses whom.
Ratios are of medians, above 1 where the system is faster than Kafka.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from streaming.spark.local_fs import fetch_local_fs_jar
from tests.bench.groups import frames
from tests.bench.groups.members import Population
from tests.bench.groups.systems import FOLDING, HELMSTREAM, KAFKA, System, start
from tests.bench.groups.wire import Wire
from tests.bench.processes import cpu_s, resident_mb
from tests.bench.report import emit, percentiles, show

PARTITIONS = 20
CASES = ("connect", "form", "rejoin", "heartbeat", "commit", "commit_wide", "idle")
_IDLE_S = 10.0

Times = tuple[int, list[float]]
"""How many operations there were, and how long each took in s."""


class Load:
    """One system and the groups that were formed with it."""

    def __init__(self, system: System, given: argparse.Namespace) -> None:
        self.system = system
        self._given = given
        self.wire = Wire(system.address)
        self._round = 0
        self.population: Population | None = None

    def cases(self) -> Iterator[tuple[str, Callable[[], Times]]]:
        return ((case, getattr(self, case)) for case in CASES)

    def connect(self) -> Times:
        """Open the connections that all members will have."""
        self.wire.connect(self._given.groups * self._given.members)
        return 0, []

    def form(self) -> Times:
        """All groups form, under new names in each run; the connections stay."""
        given = self._given
        prefix = f"group-{self._round}"
        self._round += 1
        self.population = Population(self.wire, prefix, given.groups, given.members)
        return len(self.population.members), self.population.form()

    def rejoin(self) -> Times:
        assert self.population is not None
        return len(self.population.members), self.population.rejoin()

    def heartbeat(self) -> Times:
        assert self.population is not None
        return self._flood(self.population.heartbeats(), frames.is_heard, self._given.connections)

    def commit(self) -> Times:
        """Few connections: as each waits for its answer, this is about how long a commit takes."""
        return self._commit(self._given.connections)

    def commit_wide(self) -> Times:
        """As many connections as there are members: this is about how much can be taken."""
        assert self.population is not None
        return self._commit(len(self.population.members))

    def _commit(self, connections: int) -> Times:
        assert self.population is not None
        requests = self.population.commits(PARTITIONS)
        return self._flood(
            requests, lambda answer: frames.is_committed(answer, PARTITIONS), connections
        )

    def idle(self) -> Times:
        """Nobody asks anything."""
        time.sleep(_IDLE_S)
        return 0, []

    def _flood(
        self, requests: list[bytes], is_good: Callable[[bytes], bool], connections: int
    ) -> Times:
        took = self.wire.flood(requests, is_good, connections, self._given.seconds)
        return len(took), took

    def close(self) -> None:
        self.wire.close()
        self.system.stop()


def measured(load: Load, case: str, run: Callable[[], Times], number: int) -> dict[str, Any]:
    """Run a case once; returns rates, latencies and processor time by kind of process."""
    own = psutil.Process()
    machine, mine = _busy_s(), sum(own.cpu_times()[:2])
    before, before_mb = cpu_s(load.system.processes()), resident_mb(load.system.processes())
    load.wire.failed = 0
    started = time.perf_counter()
    count, took = run()
    seconds = time.perf_counter() - started
    cpu = {kind: value - before[kind] for kind, value in cpu_s(load.system.processes()).items()}
    all_s, mine = sum(cpu.values()), sum(own.cpu_times()[:2]) - mine
    figures: dict[str, Any] = {"system_cores": all_s / seconds, **cpu}
    if count:
        figures |= {
            "per_s": count / seconds,
            **{key: value * 1000 for key, value in percentiles(took).items()},
            "system_us": all_s / count * 1e6,
            "generator_us": mine / count * 1e6,
        }
    now_mb = resident_mb(load.system.processes())
    figures |= now_mb
    figures |= {
        kind.replace("_rss_", "_grew_"): size - before_mb[kind] for kind, size in now_mb.items()
    }
    figures["failed"] = load.wire.failed
    figures["other_cores"] = (_busy_s() - machine - all_s - mine) / seconds
    return emit(f"groups_{case}", system=load.system.name, run=number, count=count, **figures)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each case and system: medians, and the ratio to Kafka."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        grouped[line["bench"], line["system"]].append(line)
    table = []
    for (bench, system), runs in grouped.items():
        row: dict[str, Any] = {"bench": bench, "system": system, "runs": len(runs)}
        base = grouped.get((bench, KAFKA))
        names = ("per_s", "p50_ms", "p99_ms", "system_us", "generator_us", "system_cores", "failed")
        for name in names:
            if all(name in one for one in runs):
                row[name] = round(median(one[name] for one in runs), 3)
        if base is not None and "per_s" in row:
            row["ratio"] = round(row["per_s"] / median(one["per_s"] for one in base), 3)
        table.append(row)
    return sorted(table, key=lambda row: row["bench"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--connections", type=int, default=64, help="of heartbeats and commits")
    parser.add_argument("--seconds", type=float, default=5.0, help="of heartbeats and commits")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=1, help="runs that do not count")
    parser.add_argument("--systems", nargs="+", default=[KAFKA, HELMSTREAM, FOLDING])
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument(
        "--folder", type=Path, default=None, help="kept; a temporary one by default"
    )
    return parser.parse_args()


def run_all(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    loads: list[Load] = []
    lines = []
    try:
        loads += (
            Load(start(name, folder / name, given.overrides), given) for name in given.systems
        )
        for number in range(-given.warm_up, given.runs):
            for cases in zip(*(load.cases() for load in loads), strict=True):
                for load, (case, run) in zip(loads, cases, strict=True):
                    if case in given.cases or case == "form":
                        line = measured(load, case, run, number)
                        if number >= 0:
                            lines.append(line)
    finally:
        for load in loads:
            load.close()
    return lines


def main() -> int:
    given = arguments()
    fetch_local_fs_jar()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as scratch:
        lines = run_all(given, given.folder or Path(scratch))
    show(f"{given.groups} groups of {given.members}", summary(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
