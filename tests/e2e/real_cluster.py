"""Real brokers of any versions, ZooKeeper, and a supervised helmstream that controls them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from streaming.demo.metadata import ask_metadata
from streaming.embedded.broker import SMALL_JVM, KafkaBroker
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.embedded.ports import LOOPBACK, free_ports
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import Supervisor
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CONTROLLER_PATH, partition_state_path, topic_path
from tests.e2e.waiting import wait_for
from tests.fixtures.plain_job import without_spark
from tests.fixtures.silence import silent_kafka_client
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

OURS = 1000
BROKER_SESSION_MS = 6_000
_PATIENCE_MS = 120_000
_JOIN_S = 120.0
_START_S = 240.0


@dataclass(frozen=True)
class Kind:
    """A broker's version and what is special about its configuration; jars: others than those of
    its version.
    """

    version: str = DEFAULT_VERSION
    config: Mapping[str, str] = field(default_factory=dict)
    jvm_options: Sequence[str] = ()
    jars: Path | None = None


@contextmanager
def running(
    folder: Path,
    brokers: Mapping[int, Kind],
    settings: Sequence[str] = (),
    *,
    spark: bool = True,
    zookeeper: EmbeddedZooKeeper | None = None,
) -> Iterator[RealCluster]:
    """A cluster under our control, for as long as the context lasts.

    spark: whether the job is the real one; tests/fixtures/plain_job.py where Spark is not what the
    tests are about. zookeeper: another than a plain one, not started yet.
    """
    zookeeper = zookeeper or EmbeddedZooKeeper(folder / "zookeeper")
    cluster = RealCluster(folder, zookeeper, brokers, settings)
    if not spark:
        without_spark(cluster.supervisor)
    with started(cluster):
        yield cluster


class Startable(Protocol):
    """A cluster that is started and stopped as a whole."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


Cluster = TypeVar("Cluster", bound=Startable)


@contextmanager
def started(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that runs for as long as the context lasts."""
    with silent_kafka_client():
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def knows_us(broker: KafkaBroker) -> bool:
    """Whether a broker tells clients that we are the controller."""
    try:
        return ask_metadata(broker.client_port).controller_id == OURS
    except OSError:
        return False


class RealCluster:
    """Starts everything in a folder, on free loopback ports; `stop` ends it."""

    def __init__(
        self,
        folder: Path,
        zookeeper: EmbeddedZooKeeper,
        brokers: Mapping[int, Kind],
        settings: Sequence[str] = (),
    ) -> None:
        self.zookeeper = zookeeper
        connect = zookeeper.start()
        self.connect = connect
        self.brokers = {
            id_: KafkaBroker(
                id_,
                connect,
                folder / f"broker-{id_}",
                version=kind.version,
                config={"zookeeper.session.timeout.ms": str(BROKER_SESSION_MS), **kind.config},
                jvm_options=(*SMALL_JVM, *kind.jvm_options),
                jars=kind.jars,
            )
            for id_, kind in brokers.items()
        }
        self.folders = DataDir(folder / "helmstream")
        (self.port,) = free_ports(1)  # CLIENT's; INTERNAL has the next one
        chosen = [
            f"zookeeper.connect={connect}",
            f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}",
            "inter.broker.listener.name=INTERNAL",
            "gateway.listeners=CLIENT,INTERNAL",
            f"gateway.port={self.port}",
            f"controller.lease.ms={_PATIENCE_MS}",
            f"request.timeout.ms={_PATIENCE_MS}",
            "auto.leader.rebalance.enable=false",  # leaders move when a test moves them
            *settings,
        ]
        self.supervisor = Supervisor(self.folders.root, [f"--set={one}" for one in chosen])
        self.session = ZkSession(connect, SESSION_TIMEOUT_MS)
        self._stopping = threading.Event()
        self._supervision = threading.Thread(target=self._supervise, daemon=True)

    @property
    def gateway(self) -> str:
        """The gateway's address for clients."""
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start helmstream and the brokers side by side; returns under our control."""
        self.supervisor.start()
        self._supervision.start()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.session.connect()
        wait_for("our control of all brokers", self.controlled, _START_S)

    def stop(self) -> None:
        """Stop everything."""
        self.stop_supervising()
        self.supervisor.stop()
        self.session.close()
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.stop()

    def stop_supervising(self) -> None:
        """Start nothing again from now on."""
        self._stopping.set()
        if self._supervision.is_alive():
            self._supervision.join(_JOIN_S)

    def json(self, path: str) -> dict[str, Any]:
        """What a znode holds; {} when there is none."""
        znode = self.session.get(path)
        return {} if znode is None or not znode.data else orjson.loads(znode.data)

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        """A partition's state as ZooKeeper has it."""
        return self.json(partition_state_path(topic, partition))

    def replicas(self, topic: str) -> dict[str, list[int]]:
        """A topic's assignment as ZooKeeper has it."""
        return self.json(topic_path(topic)).get("partitions", {})

    def broker_log(self, broker_id: int) -> str:
        """What a broker has logged so far."""
        return self.brokers[broker_id].log_path.read_text(errors="replace")

    def status(self) -> dict[str, Any]:
        """What `helmstream status` shows."""
        return fetch_status(self.folders.root, 60)

    def controlled(self) -> bool:
        """Whether the controller role is ours, all brokers are known, and all of them say so."""
        if self.json(CONTROLLER_PATH).get("brokerid") != OURS:
            return False
        status = self.status()
        if (status["role"], status["brokers"]) != ("active", sorted(self.brokers)):
            return False
        return all(knows_us(broker) for broker in self.brokers.values())

    def _supervise(self) -> None:
        self.supervisor.watch(self._stopping.is_set)
