"""What groups cost whose members only send heartbeats, and how long one member takes to join.

`python -m tests.bench.groups.quiet`: groups with short sessions heartbeat through the real front
and query, three times in a session; counted are the events that reach the log and the batches of
the query. Then the only member of a group comes with other metadata, and one member forms a new
group, both from the first JoinGroup until SyncGroup is answered; in turns with an empty batch of a
query of its own. JSON lines go to stdout.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

from streaming.paths import DataDir
from tests.bench.groups.members import Population
from tests.bench.groups.pace import Pace, add_options, event_count
from tests.bench.groups.systems import HELMSTREAM, Ours
from tests.bench.groups.wire import Wire
from tests.bench.processes import cores_between, cpu_s
from tests.bench.report import emit, percentiles
from tests.bench.worker import Worker

BEATS_PER_SESSION = 3
PER_TURN = 5
PAUSE_MS = 500
_TIMEOUTS_MS = (1_800_000, 300_000)
"""Nobody who formed a group is missed while others are timed."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session-ms", type=int, default=10_000)
    parser.add_argument("--rejoins", type=int, default=30)
    add_options(parser, seconds=60.0)
    return parser.parse_args()


def batch_count(folder: Path) -> int:
    """Return the number of the query's last batch, -1 before its first."""
    commits = DataDir(folder / "helmstream").checkpoint / "commits"
    return max((int(one.stem) for one in commits.glob("[0-9]*")), default=-1)


def idle(given: argparse.Namespace, folder: Path, system: Ours, wire: Wire) -> None:
    """Count what heartbeats lead to, after the timers of the rebalance that formed the groups."""
    timeouts_ms = (given.session_ms, given.session_ms)
    population = Population(wire, "idle", given.groups, given.members, timeouts_ms)
    population.form()
    per_s = len(population.members) * BEATS_PER_SESSION * 1000 / given.session_ms
    pace = Pace(wire, population, per_s)
    pace.run_for(3 * given.session_ms / 1000)
    while batch_count(folder) < 0:  # a head start folds until the query is ready
        pace.run_for(given.session_ms / 1000)
    events, batches, cpu = event_count(folder), batch_count(folder), cpu_s(system.processes())
    took = pace.run_for(given.seconds)
    emit(
        "groups_idle",
        seconds=given.seconds,
        members=len(population.members),
        heartbeats=len(took),
        failed=pace.failed,
        events=event_count(folder) - events,
        batches=batch_count(folder) - batches,
        **cores_between(cpu, cpu_s(system.processes()), given.seconds),
    )


def one_member(given: argparse.Namespace, folder: Path, wire: Wire) -> None:
    """Let the only member of a group rejoin, and one form a new group, in turns with an empty
    batch.
    """
    there = Population(wire, "alone", 1, 1)
    there.form()
    numbers = count()
    rejoins: list[float] = []
    forms: list[float] = []
    empty: list[float] = []
    with Worker("tests.bench.empty_batch", [str(folder / "empty")], folder / "empty.log") as query:
        query.ask("measure", events=10, pause_ms=PAUSE_MS)
        while len(rejoins) < given.rejoins:
            empty += query.ask("measure", events=PER_TURN, pause_ms=PAUSE_MS)
            rejoins += _apart(there.rejoin)
            forms += _apart(lambda: _new_group(wire, next(numbers)))
    emit("empty_batch", count=len(empty), **percentiles(empty))
    for bench, took in (("rejoins", rejoins), ("forms_a_group", forms)):
        ratio = median(took) / median(empty)
        figures = {"count": len(took), **percentiles(took), "empty_batches": ratio}
        emit(f"groups_one_member_{bench}", **figures)


def _new_group(wire: Wire, number: int) -> list[float]:
    return Population(wire, f"new-{number}", 1, 1, _TIMEOUTS_MS).form()


def _apart(act: Callable[[], list[float]]) -> list[float]:
    """Do something several times with pauses; return the milliseconds that it took."""
    took: list[float] = []
    for _ in range(PER_TURN):
        time.sleep(PAUSE_MS / 1000)
        took += [one * 1000 for one in act()]
    return took


def run(given: argparse.Namespace, folder: Path) -> None:
    system = Ours(folder, HELMSTREAM, ["group.min.session.timeout.ms=1000", *given.overrides])
    wire = Wire(system.address)
    try:
        idle(given, folder, system, wire)
        one_member(given, folder, wire)
    finally:
        wire.close()
        system.stop()


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as scratch:
        run(given, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
