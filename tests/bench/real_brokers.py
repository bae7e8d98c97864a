"""`python -m tests.bench.real_brokers --partitions 2000 --runs 1`: three real brokers, whose own
controller or helmstream controls them, in turns.

What clients have to wait for, brokers' own work included: from the change (for a broker's death:
from the end of its session) until every broker that runs tells clients the new leaders, until all
ISRs are full, or until a broker has shut down. All of it shares the machine's cores.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import psutil
from kafka import KafkaAdminClient

from streaming.demo.metadata import ask_metadata
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.spark.local_fs import fetch_local_fs_jar
from streaming.zk.multiread import read_many
from streaming.zk.znodes import CONTROLLER_PATH, broker_path
from tests.bench.load import PARTITIONS_PER_TOPIC, REPLICATION_FACTOR, state_paths, topic_name
from tests.bench.report import emit, show
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.fixtures.silence import silent_kafka_client
from tests.fixtures.waiting import wait_for

HELMSTREAM, STOCK = "helmstream", "kafka"
BROKERS = (1, 2, 3)
CONTROLLER, SHUT_DOWN, KILLED = BROKERS
"""With its own controller the cluster is controlled by the first."""

_HEAP = "-Xmx1g"
_LIMIT_S = 600.0
_POLL_S = 0.02
_ASK_MS = 300_000
_END_S = 120.0
_REST_S = 5.0


class StockCluster(RealCluster):
    """The same brokers without a helmstream."""

    def start(self) -> None:
        """Start the broker that is to be the controller, then the others."""
        for broker in self.brokers.values():
            broker.start()
        self.session.connect()
        wait_for("the controller", lambda: self.json(CONTROLLER_PATH).get("brokerid"), _LIMIT_S)


@contextmanager
def cluster_of(system: str, folder: Path) -> Iterator[RealCluster]:
    config = {"auto.leader.rebalance.enable": "false"}
    kinds = {id_: Kind(config=config, jvm_options=(_HEAP,)) for id_ in BROKERS}
    if system == HELMSTREAM:
        with running(folder, kinds) as cluster:
            yield cluster
        return
    with silent_kafka_client():
        stock = StockCluster(folder, EmbeddedZooKeeper(folder / "zookeeper"), kinds)
        try:
            stock.start()
            yield stock
        finally:
            stock.stop()


class Cases:
    """What is done to a cluster, and how long until it is seen."""

    def __init__(self, cluster: RealCluster, partitions: int) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._paths = state_paths(partitions)
        self.took_s: dict[str, float] = {}
        self.cpu_s: dict[str, float] = {}

    def all(self) -> None:
        """Perform all cases, one after the other."""
        self._measure("creation", self._create, lambda: self._led_by(BROKERS))
        self._settle()
        self._measure("one_fails", self._kill, lambda: self._led_by((CONTROLLER, SHUT_DOWN)))
        self._measure("one_returns", self._start_killed, self._in_sync)
        self._settle()
        self._measure("shutdown", self._shut_down, lambda: self._led_by((CONTROLLER, KILLED)))

    def _measure(
        self, name: str, act: Callable[[], float | None], seen: Callable[[], bool]
    ) -> None:
        cpu_s = self._cpu_s()
        began_s = time.monotonic()
        began_s = act() or began_s
        wait_for(name, seen, _LIMIT_S, poll_s=_POLL_S)
        self.took_s[name] = time.monotonic() - began_s
        self.cpu_s[name] = sum(
            max(now - cpu_s.get(pid, 0.0), 0.0) for pid, now in self._cpu_s().items()
        )

    def _settle(self) -> None:
        wait_for("full ISRs", self._in_sync, _LIMIT_S, poll_s=_POLL_S)
        time.sleep(_REST_S)

    def _create(self) -> None:
        """Create all topics in one request to the controller."""
        count = self._partitions // PARTITIONS_PER_TOPIC
        wanted = {
            topic_name(one): {
                "num_partitions": PARTITIONS_PER_TOPIC,
                "replication_factor": REPLICATION_FACTOR,
            }
            for one in range(count)
        }
        first = self._cluster.brokers[CONTROLLER].bootstrap_server
        admin: Any = KafkaAdminClient(bootstrap_servers=[first], request_timeout_ms=_ASK_MS)
        admin.create_topics(wanted, timeout_ms=_ASK_MS)
        admin.close()

    def _kill(self) -> float:
        """SIGKILL a broker, and return when its session was over."""
        self._cluster.brokers[KILLED].kill()
        path = broker_path(KILLED)
        wait_for("its end", lambda: self._cluster.session.get(path) is None, _LIMIT_S, poll_s=0.005)
        return time.monotonic()

    def _start_killed(self) -> None:
        self._cluster.brokers[KILLED].start()

    def _shut_down(self) -> None:
        assert self._cluster.brokers[SHUT_DOWN].terminate(_END_S), "it did not end by itself"

    def _led_by(self, brokers: Sequence[int]) -> bool:
        """Whether all of these tell clients that they lead all partitions among them."""
        return all(self._tells(broker, set(brokers)) for broker in brokers)

    def _tells(self, broker: int, leaders: set[int]) -> bool:
        try:
            view = ask_metadata(self._cluster.brokers[broker].client_port)
        except OSError:
            return False
        return len(view.leaders) >= self._partitions and set(view.leaders.values()) <= leaders

    def _in_sync(self) -> bool:
        found = read_many(self._cluster.session, self._paths).data
        return all(data and len(orjson.loads(data)["isr"]) == len(BROKERS) for data in found)

    def _cpu_s(self) -> dict[int, float]:
        """CPU of all processes below this one, by their ids."""
        found = {}
        for process in psutil.Process().children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            found[process.pid] = times.user + times.system
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=[HELMSTREAM, STOCK])
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    fetch_local_fs_jar()
    lines: list[dict[str, Any]] = []
    for run in range(1, given.runs + 1):
        for system in given.systems:
            with (
                tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder,
                cluster_of(system, Path(folder)) as cluster,
            ):
                cases = Cases(cluster, given.partitions)
                cases.all()
            lines += [
                emit(case, controller=system, run=run, seconds=took, cpu_s=cases.cpu_s[case])
                for case, took in cases.took_s.items()
            ]
    show(f"{given.partitions} partitions on three real brokers", summary(lines))


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line for each case: the median seconds of each system."""
    cases = dict.fromkeys(line["bench"] for line in lines)
    systems = dict.fromkeys(line["controller"] for line in lines)
    return [
        {
            "case": case,
            **{
                f"{system} {what}": round(
                    median(
                        line[what]
                        for line in lines
                        if (line["bench"], line["controller"]) == (case, system)
                    ),
                    2,
                )
                for system in systems
                for what in ("seconds", "cpu_s")
            },
        }
        for case in cases
    ]


if __name__ == "__main__":
    main()
    sys.exit(0)
