"""The demo's stage: an embedded cluster, a supervised helmstream that controls it, and clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streaming.demo.consumer import Consumer
from streaming.demo.journal import Journal
from streaming.demo.metadata import BrokerView, ask_metadata
from streaming.demo.producer import Producer
from streaming.demo.sighting import Lookout, Sighting
from streaming.demo.verdict import Verdict, judge, read_back
from streaming.embedded.broker import KafkaBroker
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.embedded.ports import LOOPBACK, free_ports
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.paths import DataDir
from streaming.supervisor.embedded import EmbeddedCluster, ZooKeeperServers
from streaming.supervisor.processes import FRONT, JOB, Supervisor

TOPIC = "demo"
PARTITIONS = 12
REPLICATION_FACTOR = 3
BROKERS = 3
MIN_INSYNC_REPLICAS = 2

_SUPERVISION_POLL_S = 0.1
_SUPERVISION_END_S = 10.0
# Twice the default lease: a job that starts on a busy machine must not be what the story fails at.
_PATIENCE_MS = 60_000
_SETTINGS = (
    "slots=8",
    f"controller.lease.ms={_PATIENCE_MS}",
    f"request.timeout.ms={_PATIENCE_MS}",
)


class TopicNotCreated(Exception):
    """The client that asked for a topic got an error."""


class DemoCluster:
    """ZooKeeper, three brokers, front and job in one folder, with a producer and a consumer.

    Everything runs on free loopback ports. `stop` ends it all; what is left behind is the folder.
    """

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        *,
        version: str = DEFAULT_VERSION,
        broker_config: Mapping[str, str] | None = None,
        zookeeper: Callable[[Path], ZooKeeperServers] = EmbeddedZooKeeper,
        log_dirs: int = 1,
    ) -> None:
        """Start ZooKeeper, made with its folder; options are --config and --set options for front
        and job, broker_config overrides broker properties, log_dirs is on how many disks each
        broker has its logs.

        Kafka's jars must be in the cache, or are fetched without a word. Raises JavaMissing,
        JavaTooOld, ArtifactsUnavailable, ChildDied, NotReady.
        """
        self.folders = DataDir(folder / "helmstream")
        self.embedded = EmbeddedCluster(
            folder / "embedded",
            BROKERS,
            version,
            config=dict(broker_config or {}),
            zookeeper=zookeeper,
            log_dirs=log_dirs,
        )
        (self._gateway_port,) = free_ports(1)
        ours = [f"gateway.port={self._gateway_port}", *_SETTINGS, *self.embedded.settings()]
        config = [*(f"--set={one}" for one in ours), *options]
        self.supervisor = Supervisor(self.folders.root, config)
        self.journal = Journal(self.folders)
        self.lookout = Lookout(self.embedded.connect)
        self.producer: Producer | None = None
        self.consumer: Consumer | None = None
        self._supervision: threading.Thread | None = None
        self._unsupervised = threading.Event()

    @property
    def gateway(self) -> str:
        """The gateway's address for clients."""
        return f"{LOOPBACK}:{self._gateway_port}"

    def start_ours(self) -> None:
        """Start front and job, and start them again whenever they end."""
        self.supervisor.start()
        self._unsupervised.clear()
        self._supervision = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self._supervision.start()

    def kill_ours(self) -> None:
        """End the supervision and SIGKILL front and job."""
        self._end_supervision()
        for role in (JOB, FRONT):
            self.supervisor.kill(role)

    def stop_ours(self) -> None:
        """End the supervision and stop front and job in order."""
        self._end_supervision()
        self.supervisor.stop()

    def start_traffic(self) -> None:
        """Start producer and consumer, from the brokers' addresses; raises KafkaError."""
        brokers = self.embedded.bootstrap_servers
        self.producer = Producer(brokers, TOPIC, PARTITIONS)
        self.producer.start()
        self.consumer = Consumer(brokers, TOPIC, PARTITIONS)
        self.consumer.start()

    def stop_traffic(self) -> None:
        """Stop the producer after its last acks; the consumer goes on."""
        if self.producer is not None:
            self.producer.stop()

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic through the gateway with an unmodified client; raises TopicNotCreated."""
        admin: Any = KafkaAdminClient(
            bootstrap_servers=[self.gateway],
            client_id="demo-admin",
            request_timeout_ms=2 * _PATIENCE_MS,
        )
        wanted = {
            "num_partitions": partitions,
            "replication_factor": REPLICATION_FACTOR,
            "configs": {"min.insync.replicas": str(MIN_INSYNC_REPLICAS)},
        }
        try:
            admin.create_topics({topic: wanted}, timeout_ms=_PATIENCE_MS)
        except (KafkaError, RuntimeError) as error:  # the latter when it finds no controller
            reason = type(error).__name__
            raise TopicNotCreated(f"topic {topic} was not created: {reason}") from error
        finally:
            admin.close()

    def broker(self, broker_id: int) -> KafkaBroker:
        """Return a broker's process."""
        return self.embedded.brokers[broker_id]

    def broker_views(self) -> dict[int, BrokerView | None]:
        """Return what each running broker tells clients; None when it does not answer."""
        return {
            broker_id: _view(broker)
            for broker_id, broker in self.embedded.brokers.items()
            if broker.running
        }

    def look(self) -> Sighting:
        """Return what ZooKeeper holds now; raises ZooKeeperError."""
        return self.lookout.look()

    def verdict(self) -> Verdict:
        """Read the topic back and compare; call after stop_traffic. Raises NotReadable."""
        acked = [] if self.producer is None else self.producer.acked
        if not acked:
            return Verdict(0, [], 0)
        stored = read_back(self.embedded.bootstrap_servers, TOPIC, range(PARTITIONS))
        return judge(acked, stored)

    def stop(self) -> None:
        """Stop clients, front and job, brokers and ZooKeeper."""
        for client in (self.producer, self.consumer):
            if client is not None:
                client.stop()
        self.producer = self.consumer = None
        self.stop_ours()
        self.lookout.close()
        self.embedded.stop()

    def _supervise(self) -> None:
        self.supervisor.watch(self._unsupervised.is_set, _SUPERVISION_POLL_S)

    def _end_supervision(self) -> None:
        self._unsupervised.set()
        if self._supervision is not None:
            self._supervision.join(_SUPERVISION_END_S)
            self._supervision = None


def _view(broker: KafkaBroker) -> BrokerView | None:
    try:
        return ask_metadata(broker.client_port)
    except OSError:
        return None
