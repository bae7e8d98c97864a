"""How long heartbeats take while a batch changes many partitions.

`python -m tests.bench.groups.beside_batch`: groups of members heartbeat at a steady pace through
the real front, first with nothing else going on, then while a stub broker fails that has a replica
of every partition (with --brokers 3), or of some. JSON lines go to stdout.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.zk.client import ZkSession
from streaming.zk.multiread import read_many
from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.bench.groups import frames
from tests.bench.groups.members import Population
from tests.bench.groups.systems import HELMSTREAM, Ours
from tests.bench.groups.wire import Wire
from tests.bench.load import create_topics, state_paths, write_topics
from tests.bench.report import emit
from tests.bench.worker import Worker

GROUP_TOPIC = "__consumer_offsets"
GROUP_PARTITIONS = 8
REAL_BROKER = 900
LISTENER = "INTERNAL"
_POLL_S = 0.5
_TIMEOUT_S = 600.0


class Cluster:
    """Stub brokers with all topics but that of groups, which the real broker has."""

    def __init__(self, folder: Path, partitions: int, brokers: int) -> None:
        self._folder = folder
        self._partitions = partitions
        self._ids = list(range(1, brokers + 1))
        self.paths = state_paths(partitions)

    def prepare(self, connect: str) -> None:
        """Write what a controller before us would have left, and start the stub brokers."""
        self.session = ZkSession(connect, 60_000)
        self.session.connect()
        create_topics(self.session, self._partitions, len(self._ids))
        create_group_topic(self.session)
        self.stubs = Worker(
            "tests.bench.stub_brokers", [connect, LISTENER], self._folder / "stubs.log"
        )
        self.stubs.ask("start", ids=self._ids)

    def versions(self) -> int:
        """Return the sum of the states' versions: it grows by one for each write."""
        return int(np.sum(read_many(self.session, self.paths).version))

    def fail_one(self) -> int:
        """Let a broker fail; return how many states were written when no more were."""
        before = self.versions()
        self.stubs.ask("drop", ids=self._ids[:1])
        return self._settled() - before

    def wait_until_loaded(self) -> None:
        """Wait until nothing more is told to the stub brokers."""
        self._quiet(lambda: self.stubs.ask("summary", since_ns=0)["requests"])

    def _settled(self) -> int:
        first, deadline = self.versions(), time.monotonic() + _TIMEOUT_S
        while self.versions() == first and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return self._quiet(self.versions)

    def _quiet(self, count) -> int:
        """Return a count that did not change for three seconds."""
        seen, since = count(), time.monotonic()
        deadline = since + _TIMEOUT_S
        while time.monotonic() - since < 3:
            time.sleep(_POLL_S)
            now = count()
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise TimeoutError(f"it went on for {_TIMEOUT_S} s")
        return seen

    def close(self) -> None:
        self.stubs.close()
        self.session.close()


def create_group_topic(session: ZkSession) -> None:
    """Create the topic of groups on the real broker alone: stub brokers follow nobody."""
    znode = TopicZNode({number: [REAL_BROKER] for number in range(GROUP_PARTITIONS)}, None)
    replicas = np.full((GROUP_PARTITIONS, 1), REAL_BROKER)
    write_topics(session, [(GROUP_TOPIC, topic_bytes(znode), replicas)])


class Pace:
    """Heartbeats of all members in turn, so many a second, whatever else happens."""

    def __init__(self, wire: Wire, population: Population, per_s: float) -> None:
        self._wire = wire
        self._requests = population.heartbeats()
        self._per_s = per_s
        self.failed = 0

    def run(self, until: threading.Event, at_least_s: float) -> list[float]:
        """Return how long each took in s, from when it was due: who waits to be sent waits too."""
        took: list[float] = []
        due: dict[int, float] = {}
        began = time.perf_counter()
        sent = 0

        def answered(number: int, answer: bytes) -> None:
            took.append(time.perf_counter() - due.pop(number))
            self.failed += not frames.is_heard(answer)

        def done() -> bool:
            nonlocal sent
            now = time.perf_counter()
            ended = until.is_set() and now - began >= at_least_s
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
        self._wire.run(done, _TIMEOUT_S)
        return took


def measured(case: str, took: list[float], pace: Pace, **more: float) -> None:
    values = np.percentile(np.array(took) * 1000, [50, 99, 99.9, 100]).tolist()
    names = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
    figures = dict(zip(names, values, strict=True))
    emit(f"heartbeats_{case}", count=len(took), **figures, failed=pace.failed, **more)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--per-second", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    return parser.parse_args()


def run(given: argparse.Namespace, folder: Path) -> None:
    cluster = Cluster(folder, given.partitions, given.brokers)
    system = Ours(
        folder, HELMSTREAM, given.overrides, broker_id=REAL_BROKER, prepare=cluster.prepare
    )
    wire = Wire(system.address)
    try:
        cluster.wait_until_loaded()
        population = Population(wire, "group", given.groups, given.members)
        population.form()
        pace = Pace(wire, population, given.per_second)
        ended = threading.Event()
        ended.set()
        events = event_count(folder)
        measured("alone", pace.run(ended, given.seconds), pace, events=event_count(folder) - events)

        ended, written = threading.Event(), []

        def fail_one() -> None:
            try:
                written.append(cluster.fail_one())
            finally:
                ended.set()

        failing = threading.Thread(target=fail_one)
        started = time.perf_counter()
        failing.start()
        took = pace.run(ended, 0.0)
        failing.join()
        seconds = time.perf_counter() - started
        measured("beside_batch", took, pace, states_written=written[0], seconds=seconds)
    finally:
        wire.close()
        system.stop()
        cluster.close()


def event_count(folder: Path) -> int:
    with EmbeddedLogReader(DataDir(folder / "helmstream").events) as reader:
        return reader.end_offset()


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as scratch:
        run(given, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
