"""The controllers under measurement, started and stopped alike."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

import psutil

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.ports import free_ports
from streaming.supervisor.processes import FRONT, JOB, Supervisor
from tests.bench.controller.stage import LISTENER
from tests.bench.processes import processes

Processes = dict[str, list[psutil.Process]]
HELMSTREAM = "helmstream"
STOCK_ID = 0
_STOCK_JVM = ("-Xms3g", "-Xmx3g")
"""As Kafka's own scripts leave it but for the heap: G1, all compilers."""


class System(Protocol):
    """One controller: where it listens, what processes it is."""

    port: int
    started_ns: int

    def start(self) -> None:
        """Start its processes, without waiting."""

    def processes(self) -> Processes:
        """Return its processes by kind; none before its start."""

    def stop(self) -> None:
        """Stop its processes."""


class Stock:
    """Kafka's own controller: a real broker, to which no partition belongs."""

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

    def stop(self) -> None:
        self._broker.kill()


class Helmstream:
    """Our front and job."""

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
        self._supervisor = Supervisor(folder / "helmstream", [f"--set={one}" for one in settings])

    def start(self) -> None:
        self.started_ns = time.time_ns()
        self._supervisor.start()

    def processes(self) -> Processes:
        if not self.started_ns:
            return {}
        for role in (FRONT, JOB):
            self._supervisor.roles[role].child.check_running()
        return processes(self._supervisor)

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
