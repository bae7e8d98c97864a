"""Runs benchmarks one after the other: `make bench ARGS="latency bulk"`, all of them by default.

Result lines (JSON) go to stdout, tables and what else is said to stderr. PARTITIONS and CYCLES in
the environment make the bulk and the latency benchmark smaller.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from streaming.spark.local_fs import fetch_local_fs_jar

BENCHES = (
    "latency",
    "bulk",
    "zookeeper",
    "log",
    "log_source",
    "wire",
    "secured",
    "fold",
    "rows",
    "group_state",
    "group_query",
    "replay",
    "standby",
    "steady",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("benches", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    chosen = parser.parse_args().benches or list(BENCHES)
    unknown = sorted(set(chosen) - set(BENCHES))
    if unknown:
        parser.error(f"unknown {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    fetch_local_fs_jar()
    codes = []
    for name in chosen:
        sys.stderr.write(f"--- {name}\n")
        command = [sys.executable, "-m", f"tests.bench.bench_{name}"]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
