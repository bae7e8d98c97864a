"""A real, unmodified Kafka broker in ZooKeeper mode as a child process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.embedded.java import Java, find_java
from streaming.embedded.kafka_jars import DEFAULT_VERSION, kafka_jars
from streaming.embedded.log4j import LOG4J1
from streaming.embedded.ports import LOOPBACK, accepts_connections, check_free, free_ports
from streaming.embedded.process import ChildProcess, NotReady

_MAIN_CLASS = "kafka.Kafka"
_READY_TIMEOUT_S = 120.0
_TERMINATE_TIMEOUT_S = 30.0
_POLL_S = 0.05
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


class KafkaBroker:
    """One broker with its logs in a folder; restarts on the same ports with the same data.

    Two plaintext listeners on loopback: CLIENT, and INTERNAL for the brokers and the controller
    (inter.broker.listener.name); with single_listener there is only CLIENT, for both. `config`
    overrides any broker property.
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
        java: Java | None = None,
        jvm_options: Sequence[str] = SMALL_JVM,
    ) -> None:
        self.broker_id = broker_id
        self.data_dir = data_dir
        self.log_path = data_dir / "broker.log"
        self.version = version
        ports = free_ports(1 if single_listener else 2)
        self.client_port = ports[0]
        self.internal_port = ports[-1]
        self._config = {**self._base_config(zookeeper, single_listener), **(config or {})}
        self._jars = jars
        self._java = java
        self._jvm_options = jvm_options
        self._child: ChildProcess | None = None

    @property
    def bootstrap_server(self) -> str:
        return f"{LOOPBACK}:{self.client_port}"

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    def start(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Start the broker and wait until its client port accepts connections.

        Raises ChildDied, NotReady, PortTaken, ArtifactsUnavailable, JavaMissing, JavaTooOld. A 2.x
        broker may register itself a moment after its port opened.
        """
        self.launch()
        self.wait_until_ready(timeout_s)

    def launch(self) -> None:
        """Start the broker without waiting; several brokers start side by side this way."""
        if self.running:
            return
        for port in {self.client_port, self.internal_port}:
            check_free(f"broker {self.broker_id}", port)
        java = self._java or find_java()
        jars = self._jars or kafka_jars(self.version, java=java)
        properties, logging = self._write_files()
        argv = [
            str(java.executable),
            *self._jvm_options,
            "-Djava.awt.headless=true",
            f"-Dlog4j.configuration={logging.as_uri()}",
            "-cp",
            f"{jars}/*",
            _MAIN_CLASS,
            str(properties),
        ]
        self._child = ChildProcess.start(f"broker {self.broker_id}", argv, log_path=self.log_path)

    def wait_until_ready(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Wait until the client port accepts connections; raises ChildDied and NotReady."""
        child = self._started()
        deadline = time.monotonic() + timeout_s
        while not accepts_connections(self.client_port):
            child.check_running()
            if time.monotonic() > deadline:
                self.kill()
                raise NotReady(f"broker {self.broker_id}", timeout_s, self.log_path)
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """SIGKILL: the broker is gone; ZooKeeper notices when the session times out."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def terminate(self, timeout_s: float = _TERMINATE_TIMEOUT_S) -> bool:
        """SIGTERM (controlled shutdown) and wait; True when it ended by itself in time."""
        if self._child is None:
            return True
        ended = self._child.terminate(timeout_s)
        self._child = None
        return ended

    def pause(self) -> None:
        """SIGSTOP: the broker keeps its connections and answers nothing."""
        self._started().pause()

    def resume(self) -> None:
        """SIGCONT after pause()."""
        self._started().resume()

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _started(self) -> ChildProcess:
        if self._child is None:
            raise RuntimeError(f"broker {self.broker_id} was not started")
        return self._child

    def _base_config(self, zookeeper: str, single_listener: bool) -> dict[str, str]:
        listeners = {"CLIENT": self.client_port}
        if not single_listener:
            listeners["INTERNAL"] = self.internal_port
        return {
            **_DEFAULTS,
            "broker.id": str(self.broker_id),
            "zookeeper.connect": zookeeper,
            "log.dirs": str(self.data_dir.resolve() / "logs"),
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
