"""What a KRaft controller would read of topics and brokers, and could not take as it is
(KRaftMigrationDriver, ZkTopicMigrationClient).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from streaming.migration.findings import Finding, Weight, such_as
from streaming.verification.cluster import Cluster


def metadata_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what is found."""
    yield from _dead_brokers(cluster)
    for unread in cluster.unread:
        path, _, reason = unread.partition(": ")
        yield Finding(
            Weight.STOPS, path, f"it cannot be read: {reason}", "mend the znode, or delete it"
        )
    if without_id := [name for name, topic in cluster.topics.items() if topic.topic_id is None]:
        yield Finding(
            Weight.STOPS,
            "topics",
            f"{len(without_id)} have no id ({such_as(without_id)})",
            "have inter.broker.protocol.version 2.8 or newer: a controller then gives them ids",
        )
    stateless = [
        f"{name}-{partition}"
        for name, topic in cluster.topics.items()
        for partition, held in topic.partitions.items()
        if held is None
    ]
    if stateless:
        yield Finding(
            Weight.CHANGES,
            "partitions",
            f"{len(stateless)} never had a leader ({such_as(stateless)}): they would begin with all"
            " replicas in sync",
            "wait until the controller has elected one; it needs a replica that is running",
        )
    if cluster.deleted:
        yield Finding(
            Weight.CHANGES,
            "topics",
            f"{len(cluster.deleted)} are being deleted ({such_as(cluster.deleted)}): they are not"
            " migrated, and brokers delete what they have of them",
            "wait until they are gone",
        )


def _dead_brokers(cluster: Cluster) -> Iterator[Finding]:
    """A migration begins once all have registered that have replicas, or are in ZooKeeper."""
    replicas: defaultdict[int, list[str]] = defaultdict(list)
    for name, topic in cluster.topics.items():
        for partition, ids in topic.assigned.items():
            for id_ in ids:
                if id_ not in cluster.brokers:
                    replicas[id_].append(f"{name}-{partition}")
    for id_, places in sorted(replicas.items()):
        yield Finding(
            Weight.STOPS,
            f"broker {id_}",
            f"it is not running, and {len(places)} partitions have a replica on it"
            f" ({such_as(places)}): the migration waits for it",
            "start it, or move them to other brokers",
        )
