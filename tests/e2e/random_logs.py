"""Event log and decision stream in topics of a cluster of their own, under random operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.demo.cluster import DemoCluster
from streaming.log.kafka_topic import create_topic
from streaming.log.location import LogLocation
from tests.fixtures.digests import digest_of, folded_digest
from tests.fixtures.log_cluster import LogCluster

EVENTS, DECISIONS = "events", "decisions"


@contextmanager
def log_cluster_in(folder: Path) -> Iterator[LogCluster]:
    """A log cluster with both topics."""
    cluster = LogCluster(folder)
    cluster.format()
    cluster.start()
    try:
        for name in (EVENTS, DECISIONS):
            create_topic(cluster.topic(name), replication_factor=1)
        yield cluster
    finally:
        cluster.kill()


def options_for(cluster: LogCluster) -> list[str]:
    """Return the options that put our logs there."""
    return [
        f"--set=event.log.url={cluster.topic(EVENTS)}",
        f"--set=decision.stream.url={cluster.topic(DECISIONS)}",
    ]


def misdecided(demo: DemoCluster, cluster: LogCluster | None) -> list[str]:
    """Return the logs of decisions that are not what a fold of the events gives."""
    events: LogLocation = demo.folders.events if cluster is None else cluster.topic(EVENTS)
    decided: list[LogLocation] = [demo.folders.decisions]
    if cluster is not None:
        decided.append(cluster.topic(DECISIONS))
    wanted = folded_digest(events)
    return [
        f"{one} does not have what a fold of {events} gives"
        for one in decided
        if digest_of(one) != wanted
    ]
