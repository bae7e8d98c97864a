"""What a broker says beside what ZooKeeper has, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from state.partitions.table import NO_LEADER
from state.protocol_errors import ProtocolError, error_text
from state.topic_partition import TopicPartition
from streaming.verification.cluster import Cluster, Leadership, Topic

Value = int | str | list[int] | None


class Matter(Enum):
    """What is compared."""

    CONTROLLER = "controller"
    BROKERS = "brokers"
    TOPIC = "topic"
    TOPIC_ID = "topic_id"
    PARTITION = "partition"
    LEADER = "leader"
    LEADER_EPOCH = "leader_epoch"
    ISR = "isr"
    REPLICAS = "replicas"
    REPLICA = "replica"
    STRAY_REPLICA = "stray_replica"
    LOG_DIR = "log_dir"


class Subject(NamedTuple):
    """What a difference is about: the same one in each look. topic and partition are None where it
    is not about one.
    """

    broker: int
    matter: Matter
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that a broker has otherwise than ZooKeeper, and both values; None: it is not there.

    Of a replica ZooKeeper's value is the leader epoch that the broker has to have heard.
    """

    subject: Subject
    zookeeper: Value
    broker: Value


class Metadata(NamedTuple):
    """What a broker tells clients: the controller, the brokers, and all topics that it knows.

    hidden: topics that it does not show us. has_ids: whether it says which ids topics have.
    """

    controller_id: int
    brokers: frozenset[int]
    topics: Mapping[str, Topic]
    hidden: frozenset[str]
    has_ids: bool


class Replicas(NamedTuple):
    """What a broker said of its own replicas: an error code for each that it was asked about under
    its leader epoch, the folder of each that it has on its disks, and the disks that failed.
    """

    codes: Mapping[TopicPartition, int]
    folders: Mapping[TopicPartition, str]
    failed_folders: Mapping[str, str]


_AGREES = frozenset(
    # Of a leader that does not know yet what its followers have it is said that offsets are not
    # available; up to version 4 of ListOffsets, that it is not.
    {ProtocolError.NONE, ProtocolError.OFFSET_NOT_AVAILABLE, ProtocolError.LEADER_NOT_AVAILABLE}
)
_IN_WORDS: Mapping[int, str] = {
    ProtocolError.UNKNOWN_LEADER_EPOCH: "an older leader epoch",
    ProtocolError.FENCED_LEADER_EPOCH: "a newer leader epoch",
    ProtocolError.UNKNOWN_TOPIC_OR_PARTITION: "no such replica",
    ProtocolError.NOT_LEADER_OR_FOLLOWER: "no such replica, or it does not lead",
    ProtocolError.KAFKA_STORAGE_ERROR: "a replica on a failed disk",
}


def metadata_differences(
    cluster: Cluster, broker_id: int, reached: frozenset[int], told: Metadata
) -> Iterator[Difference]:
    """Yield where a broker's metadata differ.

    reached: the registered brokers with an address on the listener on which it was asked; of
    another leader brokers say there that there is none (ZkMetadataCache.getPartitionMetadata), and
    in place of a KRaft controller they name any broker (KafkaApis.handleTopicMetadataRequest).
    """
    if not cluster.in_kraft and told.controller_id != cluster.controller_id:
        about = Subject(broker_id, Matter.CONTROLLER)
        yield Difference(about, cluster.controller_id, told.controller_id)
    if told.brokers != reached:
        about = Subject(broker_id, Matter.BROKERS)
        yield Difference(about, sorted(reached), sorted(told.brokers))
    for name in sorted(cluster.topics.keys() | (told.topics.keys() - cluster.left_out)):
        held, said = cluster.topics.get(name), told.topics.get(name)
        if held is not None and said is not None:
            if told.has_ids and said.topic_id != held.topic_id:
                about = Subject(broker_id, Matter.TOPIC_ID, name)
                yield Difference(about, held.topic_id, said.topic_id)
            yield from _topic_differences(name, held, broker_id, reached, said)
        elif name not in told.hidden and (held is None or any(held.partitions.values())):
            about = Subject(broker_id, Matter.TOPIC, name)
            yield Difference(about, _partitions(held), _partitions(said))


def _partitions(topic: Topic | None) -> Value:
    """Return how many partitions a topic has."""
    return None if topic is None else len(topic.partitions)


def _topic_differences(
    name: str, held: Topic, broker_id: int, reached: frozenset[int], said: Topic
) -> Iterator[Difference]:
    for partition in sorted(held.partitions.keys() | said.partitions.keys()):
        theirs = said.partitions.get(partition)
        ours = held.partitions.get(partition)
        if ours is None and partition in held.partitions:
            continue
        if ours is not None and ours.leader not in reached:
            ours = ours._replace(leader=NO_LEADER)
        if ours != theirs:
            yield from _partition_differences(broker_id, name, partition, ours, theirs)


def _partition_differences(
    broker_id: int, name: str, partition: int, ours: Leadership | None, theirs: Leadership | None
) -> Iterator[Difference]:
    def about(matter: Matter) -> Subject:
        return Subject(broker_id, matter, name, partition)

    if ours is None or theirs is None:
        values = (None if one is None else one.leader for one in (ours, theirs))
        yield Difference(about(Matter.PARTITION), *values)
        return
    for matter, held, said in zip(_MATTERS, _values(ours), _values(theirs), strict=True):
        if held != said:
            yield Difference(about(matter), held, said)


_MATTERS = (Matter.LEADER, Matter.LEADER_EPOCH, Matter.ISR, Matter.REPLICAS)


def _values(held: Leadership) -> tuple[Value, ...]:
    """Return what is compared of a partition, in the order of _MATTERS."""
    return held.leader, held.leader_epoch, list(held.isr), list(held.replicas)


def replica_differences(cluster: Cluster, broker_id: int, said: Replicas) -> Iterator[Difference]:
    """Yield where a broker's own replicas are other than those that it is to have."""
    for (name, partition), code in said.codes.items():
        if code not in _AGREES:
            held = cluster.topics[name].partitions[partition]
            about = Subject(broker_id, Matter.REPLICA, name, partition)
            what = _IN_WORDS.get(code) or error_text(code)
            yield Difference(about, held and held.leader_epoch, what)
    for (name, partition), folder in said.folders.items():
        if name not in cluster.left_out and not _is_assigned(cluster, broker_id, name, partition):
            yield Difference(
                Subject(broker_id, Matter.STRAY_REPLICA, name, partition), None, folder
            )
    if said.failed_folders:
        reasons = (f"{folder}: {reason}" for folder, reason in sorted(said.failed_folders.items()))
        yield Difference(Subject(broker_id, Matter.LOG_DIR), None, ", ".join(reasons))


def _is_assigned(cluster: Cluster, broker_id: int, name: str, partition: int) -> bool:
    topic = cluster.topics.get(name)
    if topic is None or partition not in topic.partitions:
        return False
    held = topic.partitions[partition]
    return held is None or broker_id in held.replicas
