"""A KRaft controller to which a cluster migrates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from streaming.dual_writes.metadata_log import METADATA_PARTITION
from streaming.embedded.ports import LOOPBACK, free_ports
from tests.fixtures.kraft_node import KRaftNode

KRAFT = 3000
MIGRATED = "Completed migration of metadata from ZooKeeper to KRaft"
LISTENERS = "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT"


class Quorum(KRaftNode):
    """A KRaft controller of its own, which migrates the cluster of a ZooKeeper."""

    def __init__(self, folder: Path) -> None:
        super().__init__("the KRaft controller", folder, folder / "controller.log")
        (self.port,) = free_ports(1)

    @property
    def known_to_brokers(self) -> Mapping[str, str]:
        """What brokers have to be told of it."""
        return {
            "controller.quorum.voters": f"{KRAFT}@{LOOPBACK}:{self.port}",
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
        config = {
            "process.roles": "controller",
            "node.id": str(KRAFT),
            "listeners": f"CONTROLLER://{LOOPBACK}:{self.port}",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": connect,
            "zookeeper.metadata.migration.enable": "true",
        }
        self.format_for(cluster_id, {**config, **self.known_to_brokers, **more})
        self.launch()

    def logged(self, text: str) -> bool:
        return text in self.log_text()

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace")
