"""The controllers under measurement, started and stopped alike."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

import orjson
import psutil

from checkpoints.ahead import read_ahead
from checkpoints.read import folded_until
from streaming.embedded.broker import KafkaBroker
from streaming.embedded.ports import free_ports
from streaming.errors import HelmstreamError
from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import FRONT, JOB, Supervisor
from tests.bench.controller.stage import LISTENER
from tests.bench.processes import processes

Processes = dict[str, list[psutil.Process]]
HELMSTREAM = "helmstream"
STOCK_ID = 0
_ANSWER_TIMEOUT_S = 60.0
_STOCK_JVM = ("-Xms3g", "-Xmx3g")
"""As Kafka's own scripts leave it but for the heap: G1, all compilers."""


class System(Protocol):
    """One controller: where it listens, what processes it is.

    silence_s: how long nothing must happen before a case can be over.
    """

    port: int
    started_ns: int
    silence_s: float

    def start(self) -> None:
        """Start its processes, without waiting."""

    def processes(self) -> Processes:
        """Return its processes by kind; none before its start."""

    def settled(self) -> bool:
        """Whether, as it says itself, nothing is left to do; True where it cannot say that."""

    def stop(self) -> None:
        """Stop its processes."""


class Stock:
    """Kafka's own controller: a real broker, to which no partition belongs.

    It does not say when it is done: several seconds in which it does nothing must do.
    """

    silence_s = 5.0

    def __init__(self, folder: Path, connect: str, in_flight: int) -> None:
        self.started_ns = 0
        config = {
            "zookeeper.max.in.flight.requests": str(in_flight),
            "zookeeper.session.timeout.ms": "18000",
            "auto.leader.rebalance.enable": "false",
            "auto.create.topics.enable": "false",
        }
        self._broker = KafkaBroker(
            STOCK_ID,
            connect,
            folder / "stock",
            config=config,
            single_listener=True,
            jvm_options=_STOCK_JVM,
        )
        self.port = self._broker.client_port

    def start(self) -> None:
        self.started_ns = time.time_ns()
        self._broker.launch()

    def processes(self) -> Processes:
        return {"jvm": [psutil.Process(self._broker.pid)]} if self.started_ns else {}

    def settled(self) -> bool:
        return True

    def stop(self) -> None:
        self._broker.kill()


class Helmstream:
    """Our front and job.

    Silence is only for what has not reached the event log yet: the front looks at ZooKeeper.
    """

    silence_s = 1.0

    def __init__(self, folder: Path, connect: str, overrides: list[str]) -> None:
        self.started_ns = 0
        (self.port,) = free_ports(1)
        settings = [
            f"zookeeper.connect={connect}",
            f"gateway.port={self.port}",
            f"inter.broker.listener.name={LISTENER}",
            f"gateway.listeners={LISTENER}",
            "auto.leader.rebalance.enable=false",
            "controller.lease.ms=120000",
            *overrides,
        ]
        self._data_dir = folder / "helmstream"
        self._supervisor = Supervisor(self._data_dir, [f"--set={one}" for one in settings])

    def start(self) -> None:
        self.started_ns = time.time_ns()
        self._supervisor.start()

    def processes(self) -> Processes:
        if not self.started_ns:
            return {}
        for role in (FRONT, JOB):
            self._supervisor.roles[role].child.check_running()
        return processes(self._supervisor)

    def settled(self) -> bool:
        """Whether the cluster is loaded, all events are folded, by the query too, and every broker
        has answered.
        """
        folders = DataDir(self._data_dir)
        try:
            status = fetch_status(self._data_dir, _ANSWER_TIMEOUT_S)
            pending = orjson.loads(folders.pending.read_bytes())["pending"]
        except (HelmstreamError, FileNotFoundError):
            return False
        ahead = read_ahead(folders.checkpoint)
        if ahead is not None and folded_until(folders.checkpoint) < ahead.done:
            return False
        decided = status["role"] == "active" and status["job"]["pid"] and not status["job"]["lag"]
        return bool(decided) and not pending

    def stop(self) -> None:
        self._supervisor.stop()


def make(name: str, folder: Path, connect: str, overrides: list[str]) -> System:
    """Return a controller by name: helmstream, or stock-N with N ZooKeeper requests in flight."""
    if name == HELMSTREAM:
        return Helmstream(folder, connect, overrides)
    kind, _, in_flight = name.partition("-")
    if kind != "stock" or not in_flight.isdigit():
        raise ValueError(f"unknown controller {name!r}; there are helmstream, stock-10, stock-100")
    return Stock(folder, connect, int(in_flight))
