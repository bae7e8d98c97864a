"""A KRaft controller to which a cluster migrates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.embedded.ports import LOOPBACK, free_ports
from streaming.metadata_log.reading import METADATA_PARTITION
from tests.fixtures.kraft_node import KRaftNode

KRAFT = 3000
MIGRATED = "Completed migration of metadata from ZooKeeper to KRaft"
LISTENERS = "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT"


class Quorum(KRaftNode):
    """A KRaft controller of its own, which migrates the cluster of a ZooKeeper, or goes on with it.

    version: of Kafka. alone: its voters may change, and it is the first of them (KIP-853).
    """

    def __init__(
        self, folder: Path, version: str = DEFAULT_VERSION, *, alone: bool = False
    ) -> None:
        super().__init__("the KRaft controller", folder, folder / "controller.log")
        self.version, self.alone = version, alone
        (self.port,) = free_ports(1)

    @property
    def known_to_brokers(self) -> Mapping[str, str]:
        """What brokers have to be told of it."""
        address = f"{LOOPBACK}:{self.port}"
        found = {"bootstrap.servers": address} if self.alone else {"voters": f"{KRAFT}@{address}"}
        return {
            **{f"controller.quorum.{key}": value for key, value in found.items()},
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"{LISTENERS},CONTROLLER:PLAINTEXT",
        }

    @property
    def metadata_log(self) -> Path:
        """Where its metadata log is."""
        return self.data_dir / "logs" / METADATA_PARTITION

    def begin(
        self, connect: str, cluster_id: str, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Start for the first time, with more configuration if some is given."""
        migrating = {"zookeeper.connect": connect, "zookeeper.metadata.migration.enable": "true"}
        self.prepare(cluster_id, {**migrating, **more})
        self.launch()

    def prepare(self, cluster_id: str, more: Mapping[str, str]) -> None:
        """Make its folder, with a metadata log that is empty."""
        config = {
            "process.roles": "controller",
            "node.id": str(KRAFT),
            "listeners": f"CONTROLLER://{LOOPBACK}:{self.port}",
            "inter.broker.listener.name": "INTERNAL",
        }
        options = ["--standalone"] if self.alone else []
        self.format_for(cluster_id, {**config, **self.known_to_brokers, **more}, *options)

    def logged(self, text: str) -> bool:
        return text in self.log_text()

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace")
