"""The jars of a Kafka broker."""

from __future__ import annotations

from pathlib import Path

from streaming.embedded.ivy import Artifact, JarsProgress, fetch_jars
from streaming.embedded.java import Java

DEFAULT_VERSION = "3.9.2"

# Kafka logs through slf4j 1.7 and brings no backend; this one is what Kafka's own package contains.
_LOG_BACKEND = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")


def kafka_jars(
    version: str = DEFAULT_VERSION,
    *,
    cache: Path | None = None,
    java: Java | None = None,
    progress: JarsProgress | None = None,
) -> Path:
    """Return the folder with all jars of a Kafka broker; see `fetch_jars` for errors."""
    broker = Artifact("org.apache.kafka", "kafka_2.13", version)
    artifacts = [broker, _LOG_BACKEND]
    return fetch_jars(f"kafka-{version}", artifacts, cache=cache, java=java, progress=progress)
