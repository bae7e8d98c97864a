"""How long heartbeats take while a batch changes many partitions.

`python -m tests.bench.groups.beside_batch`: groups of members heartbeat at a steady pace through
the real front, first with nothing else going on, then from when a stub broker fails that has a
replica of every partition (with --brokers 3), or of some, until the last byte was told of it. JSON
lines go to stdout.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from streaming.internal_topics import GROUP_TOPIC
from streaming.zk.client import ZkSession
from streaming.zk.multiread import read_many
from streaming.zk.znodes import TopicZNode, topic_bytes
from tests.bench.groups.members import Population
from tests.bench.groups.pace import TIMEOUT_S, Pace, add_options, event_count
from tests.bench.groups.systems import HELMSTREAM, Ours
from tests.bench.groups.wire import Wire
from tests.bench.load import create_topics, state_paths, write_topics
from tests.bench.report import emit
from tests.bench.worker import Worker

GROUP_PARTITIONS = 8
REAL_BROKER = 900
LISTENER = "INTERNAL"
_POLL_S = 0.5
_QUIET_NS = 3_000_000_000


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

    def fail_one(self) -> float:
        """Let a broker fail; return the wall clock in s of the last byte that was told of it."""
        since_ns = time.time_ns()
        self.stubs.ask("drop", ids=self._ids[:1])
        return self._told(since_ns)["last_ns"] / 1e9

    def wait_until_loaded(self) -> None:
        """Wait until nothing more is told to the stub brokers."""
        self._told(0)

    def _told(self, since_ns: int) -> dict[str, Any]:
        """Return what was told since a moment, once there was something and 3 s nothing more.

        The stubs are asked, who are another process: who measures must not read 100,000 znodes.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            told = self.stubs.ask("summary", since_ns=since_ns)
            if told["requests"] and time.time_ns() - told["last_ns"] > _QUIET_NS:
                return told
            time.sleep(_POLL_S)
        raise TimeoutError(f"it went on for {TIMEOUT_S} s")

    def close(self) -> None:
        self.stubs.close()
        self.session.close()


def create_group_topic(session: ZkSession) -> None:
    """Create the topic of groups on the real broker alone: stub brokers follow nobody."""
    znode = TopicZNode({number: [REAL_BROKER] for number in range(GROUP_PARTITIONS)}, None)
    replicas = np.full((GROUP_PARTITIONS, 1), REAL_BROKER)
    write_topics(session, [(GROUP_TOPIC, topic_bytes(znode), replicas)])


def measured(case: str, took: list[float], pace: Pace, **more: float) -> None:
    values = np.percentile(np.array(took) * 1000, [50, 99, 99.9, 100]).tolist()
    names = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
    figures = dict(zip(names, values, strict=True))
    emit(f"heartbeats_{case}", count=len(took), **figures, failed=pace.failed, **more)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--per-second", type=float, default=500.0)
    add_options(parser, seconds=20.0)
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
        events = event_count(folder)
        alone = [one for _, one in pace.run_for(given.seconds)]
        measured("alone", alone, pace, events=event_count(folder) - events)

        before = cluster.versions()
        with ThreadPoolExecutor(1) as others:
            ended = threading.Event()
            failed = others.submit(cluster.fail_one)
            failed.add_done_callback(lambda _: ended.set())
            began_s = time.time()
            took = pace.run(ended)
        last_s = failed.result()
        during = [one for due_s, one in took if began_s <= due_s <= last_s]
        written = cluster.versions() - before
        measured("beside_batch", during, pace, states_written=written, seconds=last_s - began_s)
    finally:
        wire.close()
        system.stop()
        cluster.close()


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as scratch:
        run(given, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
