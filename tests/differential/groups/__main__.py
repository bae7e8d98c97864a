"""Runs seeds (`python -m tests.differential.groups --seed 7 --steps 100`): what is asked of both
coordinators, and what differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.bench.groups.systems import FOLDING, HELMSTREAM
from tests.differential.groups.coordinators import Coordinators
from tests.differential.groups.run import Run
from tests.differential.outcome import Outcome


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.groups", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument(
        "--interrupt", action="store_true", help="half-way, others load the groups, and we again"
    )
    parser.add_argument("--spark", action="store_true", help="run our job through Spark")
    chosen = parser.parse_args()
    different, tried = 0, Counter[str]()
    folder = Path(tempfile.mkdtemp(prefix="hs-diff-"))
    _say(f"logs and data are in {folder}")
    with Coordinators(folder, system=HELMSTREAM if chosen.spark else FOLDING) as coordinators:
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            outcome = _run(coordinators, seed, chosen.steps, interrupt=chosen.interrupt)
            different += bool(outcome.differences)
            tried += outcome.tried
    for name, count in sorted(tried.items()):
        _say(f"{count:6} {name}")
    _say(f"{chosen.seeds} seeds, {different} with differences")
    return 1 if different else 0


def _run(coordinators: Coordinators, seed: int, steps: int, *, interrupt: bool) -> Outcome:
    started = time.monotonic()
    with coordinators.sides() as sides:
        run = Run(seed, *sides, say=_say)
        if interrupt:
            run.take(steps // 2)
            run.outcome.differences += coordinators.interrupt(run)
        outcome = run.take(steps)
    if outcome.differences:
        _say(outcome.report())
    _say(
        f"seed {seed}: {len(outcome.steps)} steps in {time.monotonic() - started:.0f} s, "
        f"{len(outcome.differences)} differences, known {dict(outcome.known)}"
    )
    return outcome


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
