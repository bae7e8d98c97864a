"""Heartbeats at a steady pace, and the options of the benchmarks that send them."""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from tests.bench.groups import frames
from tests.bench.groups.members import Population
from tests.bench.groups.wire import Wire

TIMEOUT_S = 600.0


def add_options(parser: argparse.ArgumentParser, *, seconds: float) -> None:
    """Add how many members send heartbeats for how long, and other settings of the job."""
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--set", action="append", default=[], dest="overrides")


def event_count(folder: Path) -> int:
    """Return how many events the log has heard."""
    with EmbeddedLogReader(DataDir(folder / "helmstream").events) as reader:
        return reader.end_offset()


class Pace:
    """Heartbeats of all members in turn, so many a second, whatever else happens."""

    def __init__(self, wire: Wire, population: Population, per_s: float) -> None:
        self._wire = wire
        self._requests = population.heartbeats()
        self._per_s = per_s
        self.failed = 0

    def run_for(self, seconds: float) -> list[tuple[float, float]]:
        """Go on for so long; return what run does."""
        ended = threading.Event()
        threading.Timer(seconds, ended.set).start()
        return self.run(ended)

    def run(self, until: threading.Event) -> list[tuple[float, float]]:
        """Go on until told; return when each was due, by the wall clock, and how long it took.

        Both are in s, and it takes from when it is due: who waits to be sent waits too.
        """
        took: list[tuple[float, float]] = []
        to_wall_s = time.time() - time.perf_counter()
        due: dict[int, float] = {}
        began = time.perf_counter()
        sent = 0

        def answered(number: int, answer: bytes) -> None:
            due_s = due.pop(number)
            took.append((to_wall_s + due_s, time.perf_counter() - due_s))
            self.failed += not frames.is_heard(answer)

        def done() -> bool:
            nonlocal sent
            now = time.perf_counter()
            ended = until.is_set()
            while not ended and began + sent / self._per_s <= now:
                number = sent % len(self._requests)
                if number in due:
                    break
                due[number] = began + sent / self._per_s
                self._wire.send(number, self._requests[number])
                sent += 1
            if not ended:
                self._wire.wake_in(max(began + sent / self._per_s - time.perf_counter(), 0))
            return ended and not due

        self._wire.answered = answered
        self._wire.run(done, TIMEOUT_S)
        return took
