"""All runs with one number of partitions: each controller in turn, and what they did differently.

Each run of each controller has a fresh ZooKeeper and fresh stub brokers.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.controller import floor
from tests.bench.controller.cases import Run
from tests.bench.controller.measure import Result, differences
from tests.bench.controller.stage import Stage
from tests.bench.controller.systems import HELMSTREAM, make
from tests.bench.report import emit

Found = dict[str, Result]
"""By case."""


class Runs:
    """lines: all that was said so far; differ: how much was not the same for two controllers."""

    def __init__(self, given: argparse.Namespace, partitions: int) -> None:
        self._given = given
        self._partitions = partitions
        self.lines: list[dict[str, Any]] = []
        self.differ = 0

    def run(self, number: int) -> None:
        """Let each controller do all cases once, and compare what they did."""
        with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
            found = {
                name: self._one(name, Path(folder) / name, number)
                for name in self._given.controllers
            }
            self.compare(found, number)

    def compare(self, found: dict[str, Found], number: int) -> None:
        """Say whether what the others made of each case is what helmstream made of it."""
        mine = found.get(HELMSTREAM, {})
        for name in sorted(found.keys() - {HELMSTREAM}):
            for case, result in mine.items():
                differ = differences(result, found[name][case])
                self._emit(f"{case}_differences", name, number, **differ)
                self.differ += sum(n for what, n in differ.items() if what.endswith("_differ"))

    def _one(self, name: str, folder: Path, number: int) -> Found:
        """Run all cases with one controller."""
        found: Found = {}
        for kind in self._given.kinds:
            found |= self._kind(name, kind, folder / kind, number)
        return found

    def _kind(self, name: str, kind: str, folder: Path, number: int) -> Found:
        """Run the cases of one kind, on a stage of their own."""
        found: Found = {}
        stage = Stage(
            folder,
            partitions=self._partitions,
            brokers=self._given.brokers,
            delay_ms=self._given.delay_ms,
            ensemble=self._given.ensemble,
            loaded=kind != "creation",
        )
        system = make(name, folder, stage.connect, self._given.overrides)
        try:
            for case, result in getattr(Run(stage, system), kind)():
                found[case] = result
                self._emit(case, name, number, **result.figures)
            system.stop()
            if name == HELMSTREAM:
                self._floors(floor.measure(stage, self._given.overrides), found, number)
        finally:
            system.stop()
            stage.close()
        return found

    def _floors(self, lowest: floor.Floor, found: Found, number: int) -> None:
        for case, result in found.items():
            floor_s = lowest.of(result.figures)
            floors = result.figures["to_last_rpc_s"] / floor_s
            self._emit(f"{case}_floor", HELMSTREAM, number, floor_s=floor_s, floors=floors)

    def _emit(self, bench: str, controller: str, number: int, **values: Any) -> None:
        about = {
            "controller": controller,
            "run": number,
            "partitions": self._partitions,
            "brokers": self._given.brokers,
            "delay_ms": self._given.delay_ms,
            "ensemble": self._given.ensemble,
        }
        self.lines.append(emit(bench, **about, **values))
