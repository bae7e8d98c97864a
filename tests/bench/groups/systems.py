"""The coordinators under measurement: each with a ZooKeeper and one real broker of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import psutil

from streaming.demo.metadata import ask_metadata
from streaming.embedded.broker import KafkaBroker
from streaming.embedded.ports import LOOPBACK, free_ports
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.supervisor.processes import Supervisor
from streaming.wire.apis import ApiKey
from tests.bench.groups.frames import TOPIC
from tests.bench.processes import processes
from tests.fixtures.gateway_client import ask_once
from tests.fixtures.plain_job import without_spark
from tests.fixtures.waiting import wait_for

KAFKA, HELMSTREAM, FOLDING = "kafka", "helmstream", "folding"
_JVM = ("-Xmx2g", "-Xms256m")
"""As Kafka's own scripts leave it but for the heap: G1, all compilers."""
_BROKER = {
    "offsets.topic.num.partitions": "8",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "1800000",
    "connections.max.idle.ms": "3600000",
    "zookeeper.session.timeout.ms": "18000",
}
_ZOOKEEPER_HEAP_MB = 1_500
_START_S = 600.0
_POLL_S = 0.2
_EXISTS_ALREADY = 36


class System(Protocol):
    """One coordinator: where it listens, what processes it is."""

    name: str

    @property
    def address(self) -> tuple[str, int]:
        """Return where members connect to."""

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return its processes by kind."""

    def stop(self) -> None:
        """Stop its processes."""


class Stock:
    """Kafka's own coordinator."""

    name = KAFKA

    def __init__(self, folder: Path) -> None:
        self._zookeeper = EmbeddedZooKeeper(folder / "zookeeper")
        self._broker = _broker(folder, self._zookeeper.start(), 1)
        self._broker.start(_START_S)
        create_topic(self._broker.client_port)
        wait_for_coordinator(self._broker.client_port, self._broker.client_port)

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._broker.client_port

    def processes(self) -> dict[str, list[psutil.Process]]:
        return {"broker": [psutil.Process(self._broker.pid)]}

    def stop(self) -> None:
        self._broker.kill()
        self._zookeeper.kill()


class Ours:
    """helmstream, and one broker that it coordinates for, which follows it.

    name folding: a job without Spark. prepare: gets ZooKeeper's address before anything else runs.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        overrides: list[str],
        *,
        broker_id: int = 1,
        prepare: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self._zookeeper = EmbeddedZooKeeper(folder / "zookeeper", max_heap_mb=_ZOOKEEPER_HEAP_MB)
        connect = self._zookeeper.start()
        prepare(connect)
        self._broker = _broker(folder, connect, broker_id)
        (self._port,) = free_ports(1)
        settings = [
            f"zookeeper.connect={connect}",
            "inter.broker.listener.name=INTERNAL",
            "gateway.listeners=CLIENT,INTERNAL",
            f"gateway.port={self._port}",
            "groups.takeover.enable=true",
            "group.initial.rebalance.delay.ms=0",
            "connections.max.idle.ms=3600000",
            "max.connections=20000",
            "controller.lease.ms=120000",
            "request.timeout.ms=120000",
            *overrides,
        ]
        config = [f"--set={one}" for one in settings]
        self._supervisor = Supervisor(folder / "helmstream", config)
        if name == FOLDING:
            without_spark(self._supervisor, one_life=True)
        self._supervisor.start()
        self._broker.start(_START_S)
        _wait_for("control of the broker", self._controls)
        create_topic(self._port)
        wait_for_coordinator(self._broker.client_port, self._port)

    def _controls(self) -> bool:
        self.processes()  # raises when one has ended
        return ask_metadata(self._port).controller_id == 1000

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._port

    def processes(self) -> dict[str, list[psutil.Process]]:
        for role in self._supervisor.roles.values():
            role.child.check_running()
        return {**processes(self._supervisor), "broker": [psutil.Process(self._broker.pid)]}

    def stop(self) -> None:
        self._supervisor.stop()
        self._broker.kill()
        self._zookeeper.kill()


def start(name: str, folder: Path, overrides: list[str]) -> System:
    """Start a system by its name; it coordinates when this returns."""
    if name == KAFKA:
        return Stock(folder)
    if name not in (HELMSTREAM, FOLDING):
        raise ValueError(f"unknown system {name!r}; there are kafka, helmstream, folding")
    return Ours(folder, name, overrides)


def _broker(folder: Path, connect: str, broker_id: int) -> KafkaBroker:
    return KafkaBroker(broker_id, connect, folder / "broker", config=_BROKER, jvm_options=_JVM)


def create_topic(port: int) -> None:
    """Create the topic of which offsets are committed."""

    def created() -> bool:
        topic = {"name": TOPIC, "num_partitions": 20, "replication_factor": 1}
        body = {"topics": [topic], "timeout_ms": 30_000, "validate_only": False}
        answer = ask_once(port, ApiKey.CREATE_TOPICS, 4, body)
        return answer["topics"][0]["error_code"] in (0, _EXISTS_ALREADY)

    _wait_for("a topic", created)


def wait_for_coordinator(broker: int, coordinator: int) -> None:
    """Wait until a broker names the coordinator, and that serves its groups."""

    def named() -> bool:
        answer = ask_once(broker, ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        return (answer["error_code"], answer["port"]) == (0, coordinator)

    def serves() -> bool:
        return ask_once(coordinator, ApiKey.LIST_GROUPS, 3, {})["error_code"] == 0

    _wait_for(f"a coordinator at port {coordinator}", named)
    _wait_for(f"groups at port {coordinator}", serves)


def _wait_for(what: str, true: Callable[[], bool]) -> None:
    """Wait until it is so; who cannot be reached is asked again."""
    wait_for(what, true, _START_S, poll_s=_POLL_S, again=(OSError,))
