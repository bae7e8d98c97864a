"""A cluster as ZooKeeper has it: who is the controller, which brokers run, who leads what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from state.topic_partition import TopicPartition
from streaming.image.announced_leader import announced_epoch, is_announced_as_ours
from streaming.internal_topics import GROUP_TOPIC
from streaming.observers.known_topics import read_topic
from streaming.wire.partition_rows import BrokerNode
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    TOPICS_PATH,
    PartitionStates,
    TopicZNode,
    broker_path,
    parse_broker,
    parse_controller_id,
    parse_kraft_epoch,
    parse_partition_states,
    partition_state_path,
    topic_path,
)


class Leadership(NamedTuple):
    """Who leads a partition and follows; isr ascending, replicas in order."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its id, None if it has none, and its partitions, None for one that never had a
    leader: no broker was told of it. assigned: replicas by partition, as ZooKeeper has them, with
    those that come and go.
    """

    topic_id: str | None
    partitions: Mapping[int, Leadership | None]
    assigned: Mapping[int, Sequence[int]] = field(default_factory=dict, compare=False)
    adding: Mapping[int, Sequence[int]] = field(default_factory=dict, compare=False)
    removing: Mapping[int, Sequence[int]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What ZooKeeper has. controller_id is None where there is no /controller; in_kraft: whether it
    is of a KRaft quorum to which the cluster migrates.

    topics has none that is being deleted, or cannot be read: those are left out. deleted: those
    that are being deleted. unread: znodes that cannot be read, each with the reason.
    """

    controller_id: int | None
    brokers: Mapping[int, BrokerNode]
    topics: Mapping[str, Topic]
    left_out: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    unread: Sequence[str] = ()
    in_kraft: bool = False

    def replicas_of(self, broker_id: int) -> Iterator[tuple[TopicPartition, Leadership]]:
        """Yield the partitions of which a broker has a replica."""
        for name, topic in self.topics.items():
            for partition, held in topic.partitions.items():
                if held is not None and broker_id in held.replicas:
                    yield (name, partition), held

    def with_groups_led_by(self, node_id: int) -> Cluster:
        """Return it as brokers are told it by a node that coordinates groups: ZooKeeper keeps
        naming a broker (docs/adr/0008-giving-groups-back.md).
        """
        topic = self.topics.get(GROUP_TOPIC)
        if topic is None:
            return self
        told = {
            partition: held and _announced(held, node_id)
            for partition, held in topic.partitions.items()
        }
        return replace(self, topics={**self.topics, GROUP_TOPIC: replace(topic, partitions=told)})


def _announced(held: Leadership, node_id: int) -> Leadership:
    if not is_announced_as_ours(held.leader, held.leader_epoch):
        return held
    return held._replace(leader=node_id, leader_epoch=announced_epoch(held.leader_epoch))


def read_cluster(session: ZkReader) -> Cluster:
    """Read all of a cluster, each part as it is when it is read.

    Raises the errors of streaming.zk.errors.
    """
    unread: list[str] = []
    brokers = _read_brokers(session, unread)
    names, deleted = topic_names(session)
    topics = read_topics(session, names, unread)
    held = _with_states(session, topics, unread)
    controller = session.get(CONTROLLER_PATH)
    data = b"" if controller is None else controller.data
    left_out = deleted.union(names) - topics.keys()
    return Cluster(
        parse_controller_id(data),
        brokers,
        held,
        left_out,
        deleted,
        unread,
        in_kraft=parse_kraft_epoch(data) is not None,
    )


def _read_brokers(session: ZkReader, unread: list[str]) -> dict[int, BrokerNode]:
    ids = [int(name) for name in session.children(BROKER_IDS_PATH) or () if name.isdecimal()]
    found = {}
    for id_, data in zip(ids, read_many(session, list(map(broker_path, ids))).data, strict=True):
        if data is None:  # gone since the ids were listed
            continue
        try:
            broker = parse_broker(data)
        except ValueError as error:
            unread.append(f"{broker_path(id_)}: {error}")
            continue
        found[id_] = BrokerNode(id_, broker.rack, tuple(broker.endpoints))
    return found


def topic_names(session: ZkReader) -> tuple[list[str], frozenset[str]]:
    """Return the topics that there are, in order, and those that are being deleted, which are none
    of them. Raises the errors of streaming.zk.errors.
    """
    deleted = frozenset(session.children(DELETE_TOPICS_PATH) or ())
    return sorted(set(session.children(TOPICS_PATH) or ()) - deleted), deleted


def read_topics(
    session: ZkReader, names: Sequence[str], unread: list[str]
) -> dict[str, TopicZNode]:
    """Read topics, those that are there; unread gets those that cannot be read, with the reason.

    Raises the errors of streaming.zk.errors.
    """
    columns = read_many(session, [topic_path(name) for name in names])
    found = {}
    for row, name in enumerate(names):
        znode = columns.znode(row)
        if znode is None:
            continue
        try:
            found[name] = read_topic(name, znode)
        except ValueError as error:
            unread.append(f"{topic_path(name)}: {error}")
    return found


def read_states(
    session: ZkReader, topics: Mapping[str, TopicZNode], unread: list[str]
) -> tuple[list[TopicPartition], PartitionStates]:
    """Read the states of topics' partitions: which they are, and a row for each; unread as for
    topics. Raises the errors of streaming.zk.errors.
    """
    places = [(name, partition) for name, topic in topics.items() for partition in topic.replicas]
    paths = [partition_state_path(*place) for place in places]
    columns = read_many(session, paths)
    states = parse_partition_states(columns.data, columns.version)
    unread += [f"{paths[row]}: {error}" for row, error in states.errors.items()]
    return places, states


def _with_states(
    session: ZkReader, topics: Mapping[str, TopicZNode], unread: list[str]
) -> dict[str, Topic]:
    places, states = read_states(session, topics, unread)
    rows = zip(
        places,
        states.present.tolist(),
        states.leader.tolist(),
        states.leader_epoch.tolist(),
        states.isr.tolist(),
        strict=True,
    )
    held: dict[str, dict[int, Leadership | None]] = {name: {} for name in topics}
    for (name, partition), present, leader, leader_epoch, isr in rows:
        replicas = tuple(topics[name].replicas[partition])
        in_sync = tuple(sorted(one for one in isr if one >= 0))
        state = Leadership(leader, leader_epoch, in_sync, replicas) if present else None
        held[name][partition] = state
    return {
        name: Topic(topic.topic_id, held[name], topic.replicas, topic.adding, topic.removing)
        for name, topic in topics.items()
    }
