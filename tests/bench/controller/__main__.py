"""`make bench-controller PARTITIONS=100000 RUNS=3`: the controllers in turns, a line for each case.

JSON lines go to stdout, tables to stderr. Each run of each controller has a fresh ZooKeeper and
fresh stub brokers. Times begin at the election (start, take-over) or at the change in ZooKeeper and
end at the last byte that any broker received. What the controllers left in ZooKeeper, and what they
told each broker, is compared within each run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from streaming.spark.local_fs import fetch_local_fs_jar
from tests.bench.controller import floor
from tests.bench.controller.cases import Run
from tests.bench.controller.measure import Result, differences
from tests.bench.controller.stage import Stage
from tests.bench.controller.systems import HELMSTREAM, make
from tests.bench.report import emit, show

Lines = list[dict[str, Any]]

KINDS = ("loaded", "moves", "creation")
"""Groups of cases, each on a fresh stage. Kafka's own controller needs minutes for the moves."""


def run_one(name: str, folder: Path, given: argparse.Namespace, partitions: int) -> dict:
    """Run all cases with one controller; return their results."""
    found: dict[str, Result] = {}
    for kind in given.kinds:
        stage = Stage(
            folder / kind,
            partitions=partitions,
            brokers=given.brokers,
            delay_ms=given.delay_ms,
            loaded=kind != "creation",
        )
        system = make(name, folder / kind, stage.connect, given.overrides)
        try:
            results = {}
            for case, result in getattr(Run(stage, system), kind)():
                results[case] = result
                emit(case, controller=name, partitions=partitions, **result.figures)
            system.stop()
            lowest = floor.measure(stage, given.overrides) if name == HELMSTREAM else None
        finally:
            system.stop()
            stage.close()
        for case, result in results.items() if lowest is not None else ():
            floor_s = lowest.of(result.figures)
            result.figures["floors"] = result.figures["to_last_rpc_s"] / floor_s
            emit(f"{case}_floor", partitions=partitions, floor_s=floor_s)
        found |= results
    return found


def summary(name: str, runs: list[dict[str, Result]], base: list[dict[str, Result]]) -> Lines:
    """Return a line for each case: minimum, median, maximum, and the ratio to the base."""
    lines = []
    for case in runs[0]:
        seconds = [one[case].figures["to_last_rpc_s"] for one in runs]
        theirs = [one[case].figures["to_last_rpc_s"] for one in base]
        middle = median(seconds)
        lines.append(
            {
                "bench": case,
                "controller": name,
                "min_s": round(min(seconds), 3),
                "median_s": round(middle, 3),
                "max_s": round(max(seconds), 3),
                "helmstream_is_faster_by": round(middle / median(theirs), 2),
                "floors": round(median(one[case].figures.get("floors", 0.0) for one in runs), 2),
            }
        )
    return lines


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-controller", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100_000])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="each way, to ZooKeeper")
    parser.add_argument("--controllers", nargs="+", default=[HELMSTREAM, "stock-10"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    return parser.parse_args()


def compare(results: dict[str, dict[str, Result]], partitions: int) -> None:
    """Say whether what the others made of each case is what helmstream made of it."""
    mine = results[HELMSTREAM]
    for name in sorted(results.keys() - {HELMSTREAM}):
        for case, result in mine.items():
            found = differences(result, results[name][case])
            emit(f"{case}_differences", controller=name, partitions=partitions, **found)


def main() -> None:
    given = arguments()
    fetch_local_fs_jar()
    for partitions in given.partitions:
        runs: dict[str, list[dict[str, Result]]] = defaultdict(list)
        for _ in range(given.runs):
            with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
                results = {
                    name: run_one(name, Path(folder) / name, given, partitions)
                    for name in given.controllers
                }
                if HELMSTREAM in results:
                    compare(results, partitions)
            for name, result in results.items():
                runs[name].append(result)
        base = runs.get(HELMSTREAM) or runs[given.controllers[0]]
        lines = [line for name in given.controllers for line in summary(name, runs[name], base)]
        show(f"{partitions} partitions", sorted(lines, key=lambda line: line["bench"]))


if __name__ == "__main__":
    main()
