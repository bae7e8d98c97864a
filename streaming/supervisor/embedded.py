"""An embedded cluster: a real ZooKeeper and real Kafka brokers on loopback, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.kafka_jars import kafka_jars
from streaming.embedded.ports import LOOPBACK
from streaming.embedded.zookeeper import EmbeddedZooKeeper

LISTENERS = "CLIENT,INTERNAL"
INTER_BROKER_LISTENER = "INTERNAL"
SESSION_TIMEOUT_MS = 6000
_PROTOCOL = "inter.broker.protocol.version"


class ZooKeeperServers(Protocol):
    """One ZooKeeper server or more, with data in a folder."""

    @property
    def log_path(self) -> Path:
        """Where they print."""

    def start(self) -> str:
        """Start those that do not run, wait until they serve, and return the connect string."""

    def stop(self) -> None:
        """Stop them."""

    def kill(self) -> None:
        """SIGKILL one."""

    def pause(self) -> None:
        """SIGSTOP one."""

    def resume(self) -> None:
        """SIGCONT what was paused."""


class EmbeddedCluster:
    """ZooKeeper and brokers 1..n; all of them end with this process."""

    def __init__(
        self,
        folder: Path,
        brokers: int,
        version: str,
        *,
        config: dict[str, str] | None = None,
        zookeeper: Callable[[Path], ZooKeeperServers] = EmbeddedZooKeeper,
        log_dirs: int = 1,
    ) -> None:
        """Fetch the broker's jars if need be and start ZooKeeper, made with its folder; brokers
        come with `start_brokers`. log_dirs: on how many disks each has its logs.
        """
        self._folder = folder
        self._version = version
        self._config = config or {}
        self._count = brokers
        self._log_dirs = log_dirs
        self._jars = kafka_jars(version)
        self.zookeeper = zookeeper(folder / "zookeeper")
        self.connect = self.zookeeper.start()
        self.brokers: dict[int, KafkaBroker] = {}

    def start_brokers(self, started: Callable[[int], None] = lambda _: None) -> None:
        """Start all brokers side by side and wait until they accept clients."""
        self._start(range(1, self._count + 1), started)

    def add_brokers(self, broker_ids: Sequence[int]) -> None:
        """Start more brokers and wait until they accept clients."""
        self._start(broker_ids, lambda _: None)

    def forget_broker(self, broker_id: int) -> None:
        """Let go of a broker that has been stopped for good."""
        del self.brokers[broker_id]

    def _start(self, broker_ids: Sequence[int], started: Callable[[int], None]) -> None:
        for broker_id in broker_ids:
            self.brokers[broker_id] = KafkaBroker(
                broker_id,
                self.connect,
                self._folder / f"broker-{broker_id}",
                version=self._version,
                config=self._config,
                jars=self._jars,
                log_dirs=self._log_dirs,
            )
            self.brokers[broker_id].launch()
        for broker_id in broker_ids:
            self.brokers[broker_id].wait_until_ready()
            started(broker_id)

    @property
    def bootstrap_servers(self) -> list[str]:
        """The brokers' client addresses."""
        return [broker.bootstrap_server for broker in self.brokers.values()]

    def settings(self) -> list[str]:
        """Return the settings that make a helmstream the controller of this cluster."""
        protocol = self._config.get(_PROTOCOL)
        return [
            *([] if protocol is None else [f"{_PROTOCOL}={protocol}"]),
            f"zookeeper.connect={self.connect}",
            f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}",
            f"inter.broker.listener.name={INTER_BROKER_LISTENER}",
            f"gateway.listeners={LISTENERS}",
            f"gateway.host={LOOPBACK}",
            f"gateway.advertised.host={LOOPBACK}",
        ]

    def stop(self) -> None:
        """Stop brokers, then ZooKeeper."""
        for broker in self.brokers.values():
            broker.kill()
        self.zookeeper.stop()
