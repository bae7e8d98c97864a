"""Runs seeds (`python -m tests.differential --seed 7 --steps 30`): steps, and what differs."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.differential.run import Run
from tests.differential.servers import Servers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many, counting up")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--spark", action="store_true", help="run our job through Spark")
    chosen = parser.parse_args()
    different = 0
    folder = Path(tempfile.mkdtemp(prefix="hs-diff-"))
    sys.stdout.write(f"logs and data are in {folder}\n")
    with Servers(folder) as servers:
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            different += _run(servers, seed, chosen.steps, spark=chosen.spark)
    sys.stdout.write(f"{chosen.seeds} seeds, {different} with differences\n")
    return 1 if different else 0


def _run(servers: Servers, seed: int, steps: int, *, spark: bool) -> bool:
    started = time.monotonic()
    run = Run(seed, *servers.places(str(seed)), spark=spark)
    try:
        outcome = run.take(steps, say=_say)
    finally:
        run.close()
    if outcome.differences:
        _say(outcome.report())
    _say(
        f"seed {seed}: {len(outcome.steps)} steps in {time.monotonic() - started:.0f} s, "
        f"{len(outcome.differences)} differences, known {dict(outcome.known)}"
    )
    return bool(outcome.differences)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
