"""The jars of a Kafka broker."""

from __future__ import annotations

from pathlib import Path

from streaming.embedded.ivy import Artifact, JarsProgress, fetch_jars
from streaming.embedded.java import Java

DEFAULT_VERSION = "3.9.2"

# Kafka logs through slf4j 1.7 and brings no backend; this one is what Kafka's own package contains.
LOG_BACKEND = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")
_SCALA_2_13_SINCE = (2, 4)
# Brokers before 2.4 bring ZooKeeper's client of 3.4, which does not connect on Java 14 or newer
# (ZOOKEEPER-3779). That of 3.5 takes its place, and brings a log backend.
_ZOOKEEPER_CLIENT = Artifact("org.apache.zookeeper", "zookeeper", "3.5.9")


def kafka_jars(
    version: str = DEFAULT_VERSION,
    *,
    cache: Path | None = None,
    java: Java | None = None,
    progress: JarsProgress | None = None,
) -> Path:
    """Return the folder with all jars of a Kafka broker; see `fetch_jars` for errors."""
    major, minor = (int(number) for number in version.split(".")[:2])
    is_old = (major, minor) < _SCALA_2_13_SINCE
    broker = Artifact("org.apache.kafka", f"kafka_{'2.12' if is_old else '2.13'}", version)
    artifacts = [broker, _ZOOKEEPER_CLIENT if is_old else LOG_BACKEND]
    return fetch_jars(f"kafka-{version}", artifacts, cache=cache, java=java, progress=progress)
