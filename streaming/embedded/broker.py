"""A real, unmodified Kafka broker in ZooKeeper mode as a child process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.embedded.java import find_java
from streaming.embedded.kafka_jars import DEFAULT_VERSION, kafka_jars
from streaming.embedded.log4j import LOG4J1
from streaming.embedded.ports import LOOPBACK, accepts_connections, check_free, free_ports
from streaming.embedded.server import EmbeddedServer

MAIN_CLASS = "kafka.Kafka"
_READY_TIMEOUT_S = 120.0
_TERMINATE_TIMEOUT_S = 30.0
SMALL_JVM = ("-Xmx400m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Little memory and a short start: for many brokers on one machine."""

# Small but real: few threads and internal partitions, a short session so that a dead broker is
# noticed in seconds, and no memory for the log cleaner beyond what it insists on.
_DEFAULTS: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": "3000",
    "zookeeper.connection.timeout.ms": "18000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class KafkaBroker(EmbeddedServer):
    """One broker with its logs in a folder; restarts on the same ports with the same data.

    Two plaintext listeners on loopback: CLIENT, and INTERNAL for the brokers and the controller
    (inter.broker.listener.name); with single_listener there is only CLIENT, for both. `config`
    overrides any broker property; log_dirs: on how many disks the logs are.
    """

    def __init__(
        self,
        broker_id: int,
        zookeeper: str,
        data_dir: Path,
        *,
        version: str = DEFAULT_VERSION,
        config: Mapping[str, str] | None = None,
        single_listener: bool = False,
        jars: Path | None = None,
        jvm_options: Sequence[str] = SMALL_JVM,
        log_dirs: int = 1,
    ) -> None:
        super().__init__(f"broker {broker_id}", data_dir, data_dir / "broker.log")
        self.broker_id = broker_id
        self.log_dirs = [data_dir / f"logs{number or ''}" for number in range(log_dirs)]
        self.version = version
        ports = free_ports(1 if single_listener else 2)
        self.client_port = ports[0]
        self.internal_port = ports[-1]
        self._config = {**self._base_config(zookeeper, single_listener), **(config or {})}
        self._jars = jars
        self._jvm_options = jvm_options

    @property
    def bootstrap_server(self) -> str:
        return f"{LOOPBACK}:{self.client_port}"

    def change_version(self, version: str) -> None:
        """Be of another version from the next start on; raises as `kafka_jars` does."""
        self._jars = kafka_jars(version)
        self.version = version

    def change_config(self, config: Mapping[str, str]) -> None:
        """Have these properties, beside those it has, from the next start on."""
        self._config |= config

    def start(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Start the broker and wait until its client port accepts connections.

        Raises ChildDied, NotReady, ServerPortTaken, ArtifactsUnavailable, JavaMissing, JavaTooOld.
        A 2.x broker may register itself a moment after its port opened.
        """
        self.launch()
        self.wait_until_ready(timeout_s)

    def launch(self) -> None:
        """Start the broker without waiting; several brokers start side by side this way."""
        if self.running:
            return
        for port in {self.client_port, self.internal_port}:
            check_free(self.name, port)
        java = find_java()
        jars = self._jars or kafka_jars(self.version, java=java)
        properties, logging = self._write_files()
        options = [
            *self._jvm_options,
            "-Djava.awt.headless=true",
            f"-Dlog4j.configuration={logging.as_uri()}",
        ]
        self._launch(java, options, f"{jars}/*", MAIN_CLASS, str(properties))

    def wait_until_ready(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Wait until the client port accepts connections; raises ChildDied and NotReady."""
        self._wait_until(lambda: accepts_connections(self.client_port), timeout_s)

    def terminate(self, timeout_s: float = _TERMINATE_TIMEOUT_S) -> bool:
        """SIGTERM (controlled shutdown) and wait; True when it ended by itself in time."""
        return super().terminate(timeout_s)

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _base_config(self, zookeeper: str, single_listener: bool) -> dict[str, str]:
        listeners = {"CLIENT": self.client_port}
        if not single_listener:
            listeners["INTERNAL"] = self.internal_port
        return {
            **_DEFAULTS,
            "broker.id": str(self.broker_id),
            "zookeeper.connect": zookeeper,
            "log.dirs": ",".join(str(folder.resolve()) for folder in self.log_dirs),
            "listeners": ",".join(f"{n}://{LOOPBACK}:{p}" for n, p in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{n}:PLAINTEXT" for n in listeners),
            "inter.broker.listener.name": "CLIENT" if single_listener else "INTERNAL",
        }

    def _write_files(self) -> tuple[Path, Path]:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        properties = self.data_dir / "server.properties"
        lines = [f"{key}={value}\n" for key, value in self._config.items()]
        properties.write_text("".join(lines), encoding="utf-8")
        logging = self.data_dir / "log4j.properties"
        logging.write_text(LOG4J1, encoding="utf-8")
        return properties, logging.resolve()
