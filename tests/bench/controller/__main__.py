"""`make bench-controller PARTITIONS=100000 RUNS=3`: the controllers in turns, a line for each case.

JSON lines go to stdout, tables to stderr and, with --markdown, to a file. Times begin at the
election (start, take-over) or at the change in ZooKeeper and end at the last znode written and at
the last byte that any broker received. What the controllers left in ZooKeeper, and what they told
each broker, is compared within each run; the exit code is 1 when anything differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from streaming.spark.local_fs import fetch_local_fs_jar
from tests.bench.controller.runs import Runs
from tests.bench.controller.systems import HELMSTREAM
from tests.bench.controller.tables import Cases, tables
from tests.bench.report import emit, markdown, show

KINDS = ("loaded", "moves", "creation")
"""Groups of cases, each on a fresh stage. Kafka's own controller needs minutes for the moves."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-controller", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100_000])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--delay-ms", type=float, default=0.0, help="each way, to ZooKeeper")
    parser.add_argument("--ensemble", action="store_true", help="three ZooKeepers")
    parser.add_argument("--controllers", nargs="+", default=[HELMSTREAM, "stock-10"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there too")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    if given.delay_ms and given.ensemble:
        parser.error("--delay-ms is of a single ZooKeeper")
    return given


def report(lines: list[dict[str, Any]]) -> str:
    """Say the least, median and most of all runs, a JSON line for each case; show tables, and
    return them as Markdown.
    """
    for summary in Cases(lines).summaries():
        emit(**summary)
    found = tables(lines)
    for title, rows in found:
        show(title, rows)
    return "\n".join(markdown(*one) for one in found)


def main() -> int:
    given = arguments()
    fetch_local_fs_jar()
    written: list[str] = []
    differ = 0
    for partitions in given.partitions:
        runs = Runs(given, partitions)
        for number in range(1, given.runs + 1):
            runs.run(number)
        written.append(report(runs.lines))
        if given.markdown is not None:
            given.markdown.write_text("\n".join(written))
        differ += runs.differ
    if differ:
        sys.stderr.write(f"{differ} things were not the same for two controllers\n")
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
