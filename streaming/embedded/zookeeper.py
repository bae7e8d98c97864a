"""A real ZooKeeper server out of the jars that pyspark ships."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.embedded.java import find_java
from streaming.embedded.log4j import LOG4J1
from streaming.embedded.ports import LOOPBACK, check_free, free_ports
from streaming.embedded.server import EmbeddedServer
from streaming.embedded.spark_jars import spark_jars

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JAR_PATTERNS = (
    "zookeeper-*.jar",
    "netty-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "commons-io-*.jar",
)
_READY_TIMEOUT_S = 60.0
_TICK_TIME_MS = 500
_STOP_TIMEOUT_S = 10.0

_CONFIG = """\
tickTime={tick_time_ms}
dataDir={data_dir}
clientPort={port}
clientPortAddress={host}
maxClientCnxns=0
minSessionTimeout={min_session_timeout_ms}
maxSessionTimeout=60000
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr
"""

_LOG4J2 = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d{ISO8601}] %p %m (%c)%n
"""


class EmbeddedZooKeeper(EmbeddedServer):
    """One standalone ZooKeeper server on a loopback port, with its data in a folder.

    The data survives stop() and kill(); start() on the same object serves the same data on the same
    port again. Sessions as short as two ticks are allowed (1 s), so that a test need not
    wait the usual 18 s for a broker to be declared dead.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        max_heap_mb: int = 400,
        max_packet_bytes: int = 1 << 20,
        jars: Path | None = None,
        config: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        """config: lines of zoo.cfg beside those that it has; jvm_options: those of Java, too."""
        super().__init__("ZooKeeper", data_dir, data_dir / "zookeeper.log")
        self.port = free_ports(1)[0] if port is None else port
        self._max_heap_mb = max_heap_mb
        self._max_packet_bytes = max_packet_bytes
        self._jars = jars
        self._config = config or {}
        self._jvm_options = jvm_options

    @property
    def connect_string(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self, timeout_s: float = _READY_TIMEOUT_S) -> str:
        """Start the server, wait until it serves, and return its connect string.

        Raises JavaMissing, JavaTooOld, SparkJarsMissing, ServerPortTaken, ChildDied and NotReady.
        """
        if self.running:
            return self.connect_string
        check_free(self.name, self.port)
        java = find_java()
        config, log4j2, log4j1 = self._write_files()
        options = [
            f"-Xmx{self._max_heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={log4j2}",
            f"-Dlog4j.configuration={log4j1.as_uri()}",
            "-Dzookeeper.jmx.log4j.disable=true",
            f"-Djute.maxbuffer={self._max_packet_bytes}",
            *self._jvm_options,
        ]
        self._launch(java, options, self._class_path(), _MAIN_CLASS, str(config))
        self._wait_until(self._serves, timeout_s)
        return self.connect_string

    def stop(self) -> None:
        """Stop the server in order (its sessions stay open on disk); nothing when not running."""
        self.terminate(_STOP_TIMEOUT_S)

    def __enter__(self) -> EmbeddedZooKeeper:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _class_path(self) -> str:
        if self._jars is not None:
            return f"{self._jars}/*"
        return os.pathsep.join(map(str, spark_jars(_JAR_PATTERNS)))

    def _write_files(self) -> tuple[Path, Path, Path]:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        config = self.data_dir / "zookeeper.properties"
        more = "".join(f"{key}={value}\n" for key, value in self._config.items())
        config.write_text(
            _CONFIG.format(
                tick_time_ms=_TICK_TIME_MS,
                data_dir=self.data_dir.resolve() / "data",
                port=self.port,
                host=LOOPBACK,
                min_session_timeout_ms=2 * _TICK_TIME_MS,
            )
            + more,
            encoding="utf-8",
        )
        log4j2 = self.data_dir / "log4j2.properties"
        log4j2.write_text(_LOG4J2, encoding="utf-8")
        log4j1 = self.data_dir / "log4j.properties"
        log4j1.write_text(LOG4J1, encoding="utf-8")
        return config, log4j2.resolve(), log4j1.resolve()

    def _serves(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1.0) as connection:
                connection.sendall(b"srvr")
                return b"Mode:" in connection.makefile("rb").read()
        except OSError:
            return False
