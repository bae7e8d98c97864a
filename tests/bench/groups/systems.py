"""The coordinators under measurement: each with a ZooKeeper and one real broker of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
GROUP_PARTITIONS = 8
_BROKER = {
    "offsets.topic.num.partitions": str(GROUP_PARTITIONS),
    "num.network.threads": "3",
    "num.io.threads": "8",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "1800000",
    "connections.max.idle.ms": "3600000",
    "zookeeper.session.timeout.ms": "18000",
}
_ZOOKEEPER_HEAP_MB = 1_500
NO_MORE: Mapping[str, str] = {}
_START_S = 600.0
_POLL_S = 0.2
_EXISTS_ALREADY = 36


class System(Protocol):
    """One coordinator: where it listens, what processes it is."""

    name: str

    @property
    def address(self) -> tuple[str, int]:
        """Return where members connect to."""

    @property
    def broker_port(self) -> int:
        """Return where its broker listens."""

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return its processes by kind."""

    def stop(self) -> None:
        """Stop its processes."""


class Stock:
    """Kafka's own coordinator."""

    name = KAFKA

    def __init__(self, folder: Path, broker_config: Mapping[str, str] = NO_MORE) -> None:
        self._zookeeper = EmbeddedZooKeeper(folder / "zookeeper")
        self._broker = _broker(folder, self._zookeeper.start(), 1, broker_config)
        self._broker.start(_START_S)
        create_topic(self._broker.client_port)
        wait_for_coordinator(self._broker.client_port, self._broker.client_port)

    def restart(self) -> None:
        """Stop the broker, start it again, and wait until it coordinates."""
        assert self._broker.terminate(), "the broker does not end"
        self._broker.start(_START_S)
        wait_for_coordinator(self._broker.client_port, self._broker.client_port)

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._broker.client_port

    @property
    def broker_port(self) -> int:
        """Return where its broker listens."""
        return self._broker.client_port

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
        broker_config: Mapping[str, str] = NO_MORE,
        prepare: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self._zookeeper = EmbeddedZooKeeper(folder / "zookeeper", max_heap_mb=_ZOOKEEPER_HEAP_MB)
        connect = self._zookeeper.start()
        prepare(connect)
        self._broker = _broker(folder, connect, broker_id, broker_config)
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
        self._config = [f"--set={one}" for one in settings]
        self._folder = folder / "helmstream"
        self._supervisor = self._start_ours()
        self._broker.start(_START_S)
        _wait_for("control of the broker", self._controls)
        create_topic(self._port)
        wait_for_coordinator(self._broker.client_port, self._port)

    def _start_ours(self) -> Supervisor:
        supervisor = Supervisor(self._folder, self._config)
        if self.name == FOLDING:
            without_spark(supervisor, one_life=True)
        supervisor.start()
        return supervisor

    def leave(self) -> None:
        """Give everything back to the broker, and wait until that coordinates."""
        self._supervisor.stop()
        wait_for_coordinator(self._broker.client_port, self._broker.client_port)

    def come_back(self) -> None:
        """Coordinate again, after `leave`."""
        self._supervisor = self._start_ours()
        _wait_for("control of the broker", self._controls)
        wait_for_coordinator(self._broker.client_port, self._port)

    def _controls(self) -> bool:
        self.processes()  # raises when one has ended
        return ask_metadata(self._port).controller_id == 1000

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._port

    @property
    def broker_port(self) -> int:
        """Return where its broker listens."""
        return self._broker.client_port

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


def _broker(folder: Path, connect: str, broker_id: int, more: Mapping[str, str]) -> KafkaBroker:
    config = {**_BROKER, **more}
    return KafkaBroker(broker_id, connect, folder / "broker", config=config, jvm_options=_JVM)


def create_topic(port: int, name: str = TOPIC, partitions: int = 20) -> None:
    """Create a topic of which offsets are committed."""

    def created() -> bool:
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
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
