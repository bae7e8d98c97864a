"""`python -m tests.bench.endurance --minutes 30`: a small cluster that is busy all the time.

Three real brokers; each second a topic comes and another goes, the metrics are read, and somebody
connects and hangs up; each three seconds a topic is moved; and members of fifty consumer groups
come, commit, and leave. What is kept of all that should not grow:
one JSON line each half minute has memory, descriptors and threads of front, job, JVM and Python
workers, the size of each folder, and what was done; the table at the end compares the thirds.
Logs are kept for a minute, so that their beginnings are deleted all the time.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import socket
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from streaming.embedded.ports import LOOPBACK, free_ports
from streaming.spark.local_fs import fetch_local_fs_jar
from tests.bench.processes import processes, resident_mb
from tests.bench.report import emit, show
from tests.e2e.group_stage import BROKER_CONFIG
from tests.e2e.real_cluster import Kind, RealCluster, running

BROKERS = (1, 2, 3)
STAYING, STAYING_PARTITIONS = "stays", 6
NAMES, ALIVE = 50, 10
"""Of topics that come and go: how many names there are, and how many at a time."""
MEMBERS, GROUPS_OF_EACH = 5, 10
SETTINGS = (
    "groups.takeover.enable=true",
    "group.initial.rebalance.delay.ms=0",
    "log.retention.ms=60000",
    "event.log.segment.bytes=65536",
)
_ASK_MS = 60_000
_MEMBER_S = 4.0
_SAMPLE_S = 30.0
_THIRDS = ("first", "second", "last")

Work = Callable[[int], None]


class Load:
    """What is done to the cluster, each kind in a thread of its own until all is stopped."""

    def __init__(
        self, cluster: RealCluster, metrics_port: int, clients: contextlib.ExitStack
    ) -> None:
        self._metrics_port = metrics_port
        self.done: Counter[str] = Counter()
        self._servers = ",".join(one.bootstrap_server for one in cluster.brokers.values())
        self._gateway = cluster.gateway
        self._clients = clients
        self._stopped = threading.Event()
        self._random = random.Random(1)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        admin = self._admin()
        new = {"num_partitions": STAYING_PARTITIONS, "replication_factor": len(BROKERS)}
        admin.create_topics({STAYING: new}, timeout_ms=_ASK_MS)
        self._repeat("topics", self._topics(admin), 1.0)
        self._repeat("moves", self._moves(self._admin()), 3.0)
        self._repeat("records", self._records(), 0.2)
        self._repeat("scrapes", self._scrape, 1.0)
        self._repeat("knocks", self._knock, 1.0)
        for member in range(MEMBERS):
            self._repeat("members", self._member(member), 0.1)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(2 * _MEMBER_S)

    def _admin(self) -> Any:
        admin: Any = KafkaAdminClient(bootstrap_servers=[self._gateway], request_timeout_ms=_ASK_MS)
        self._clients.callback(admin.close)
        return admin

    def _repeat(self, name: str, work: Work, pause_s: float) -> None:
        def loop() -> None:
            turn = 0
            while not self._stopped.wait(pause_s):
                try:
                    work(turn)
                except (KafkaError, KafkaException, OSError) as error:
                    self.done[f"{name} {type(error).__name__}"] += 1
                else:
                    self.done[name] += 1
                turn += 1

        thread = threading.Thread(target=loop, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _topics(self, admin: Any) -> Work:
        def work(turn: int) -> None:
            new = {"num_partitions": 3, "replication_factor": len(BROKERS)}
            admin.create_topics({f"comes-{turn % NAMES}": new}, timeout_ms=_ASK_MS)
            if turn >= ALIVE:
                admin.delete_topics([f"comes-{(turn - ALIVE) % NAMES}"], timeout_ms=_ASK_MS)

        return work

    def _moves(self, admin: Any) -> Work:
        def work(_: int) -> None:
            order = self._random.sample(BROKERS, len(BROKERS))
            places = (TopicPartition(STAYING, number) for number in range(STAYING_PARTITIONS))
            admin.alter_partition_reassignments(dict.fromkeys(places, order))

        return work

    def _scrape(self, _: int) -> None:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self._metrics_port}/metrics") as answer:
            answer.read()

    def _knock(self, _: int) -> None:
        """Do what a load balancer does to see whether somebody listens."""
        host, port = self._gateway.split(":")
        socket.create_connection((host, int(port)), timeout=10).close()

    def _records(self) -> Work:
        producer = Producer({"bootstrap.servers": self._servers, "log_level": 0})

        def work(_: int) -> None:
            for number in range(STAYING_PARTITIONS):
                producer.produce(STAYING, b"x" * 100, partition=number)
            producer.poll(0)

        return work

    def _member(self, number: int) -> Work:
        def work(turn: int) -> None:
            config = {
                "bootstrap.servers": self._servers,
                "group.id": f"group-{number}-{turn % GROUPS_OF_EACH}",
                "client.id": f"member-{number}-{turn}",
                "log_level": 0,
            }
            consumer = Consumer(config)
            consumer.subscribe([STAYING])
            end_s = time.monotonic() + _MEMBER_S
            try:
                while time.monotonic() < end_s and not self._stopped.is_set():
                    if consumer.poll(0.2) is not None:
                        consumer.commit(asynchronous=False)
            finally:
                consumer.close()

        return work


def samples(cluster: RealCluster, load: Load, minutes: float) -> Iterator[dict[str, Any]]:
    """Yield what everything takes, each half minute."""
    began_s = time.monotonic()
    while (now_s := time.monotonic() - began_s) < minutes * 60:
        time.sleep(_SAMPLE_S)
        found = processes(cluster.supervisor)
        status = cluster.status()
        yield emit(
            "endurance",
            after_s=now_s + _SAMPLE_S,
            **resident_mb(found),
            **_counted("fds", found, psutil.Process.num_fds),
            **_counted("threads", found, psutil.Process.num_threads),
            **_folders_mb(cluster.folders.root),
            batches=status["job"]["batches"],
            events=status["event_log"]["end_offset"],
            groups=status["groups"]["groups"],
            **{name.replace(" ", "_"): count for name, count in sorted(load.done.items())},
        )


def _counted(
    what: str,
    found: dict[str, list[psutil.Process]],
    count: Callable[[psutil.Process], int],
) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for kind, ones in found.items():
        for one in ones:
            with contextlib.suppress(psutil.NoSuchProcess):  # Spark ends its workers at any time
                counts[f"{kind}_{what}"] += count(one)
    return counts


def _folders_mb(root: Path) -> dict[str, float]:
    sizes: Counter[str] = Counter()
    for path in root.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                sizes[f"{path.relative_to(root).parts[0]}_mb"] += path.stat().st_size
    return {name: size / 2**20 for name, size in sizes.items() if size > 2**10}


def thirds(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the medians of each third of the time, of what is kept."""
    size = max(len(lines) // len(_THIRDS), 1)
    names = [name for name in lines[-1] if name.endswith(("_mb", "_fds", "_threads"))]
    return [
        {
            "what": name,
            **{
                third: round(median(line.get(name, 0) for line in lines[at : at + size]), 1)
                for third, at in zip(_THIRDS, range(0, len(lines), size), strict=False)
            },
        }
        for name in names
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    fetch_local_fs_jar()
    kinds = {id_: Kind(config=BROKER_CONFIG) for id_ in BROKERS}
    (metrics_port,) = free_ports(1)
    settings = [*SETTINGS, f"metrics.port={metrics_port}", *given.settings]
    with (
        tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder,
        running(Path(folder), kinds, settings) as cluster,
        contextlib.ExitStack() as clients,
    ):
        load = Load(cluster, metrics_port, clients)
        load.start()
        clients.callback(load.stop)
        lines = list(samples(cluster, load, given.minutes))
    show("medians of each third of the time", thirds(lines))


if __name__ == "__main__":
    main()
