"""Topics and their partitions as a KRaft quorum would know them (ZkTopicMigrationClient)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

import numpy as np

from state.topic_ids import topic_id_from_text
from state.topic_partition import TopicPartition
from streaming.errors import HelmstreamError
from streaming.metadata_log.records import Record, RecordType
from streaming.migration.findings import such_as
from streaming.verification.cluster import read_states, read_topics, topic_names
from streaming.wire.schema_codec import Body
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import PartitionStates, TopicZNode


class TopicsUnreadable(HelmstreamError):
    """Some topic cannot be taken over; the message says which and why.

    Without it brokers would take what they have of it for something that was deleted.
    """

    exit_code = 2


def read_all_topics(session: ZkReader) -> dict[str, TopicZNode]:
    """Return all topics by name, but for those that are being deleted, which a migration leaves out
    too. Raises TopicsUnreadable, and the errors of streaming.zk.errors.
    """
    unread: list[str] = []
    names, _ = topic_names(session)
    topics = read_topics(session, names, unread)
    _refuse(unread)
    _refuse([f"{name} has no id" for name, topic in topics.items() if topic.topic_id is None])
    return topics


def topic_records(session: ZkReader, topics: Mapping[str, TopicZNode]) -> Iterator[Record]:
    """Yield a record for each topic, and those of its partitions behind it; raises as
    `read_all_topics`.
    """
    unread: list[str] = []
    places, states = read_states(session, topics, unread)
    _refuse(unread)
    ids = {name: UUID(bytes=topic_id_from_text(topic.topic_id)) for name, topic in topics.items()}
    last = None
    for (name, number), state in zip(places, _states(topics, places, states), strict=True):
        if name != last:
            yield Record(RecordType.TOPIC, {"name": name, "topic_id": ids[name]})
            last = name
        topic = topics[name]
        body = {
            "partition_id": number,
            "topic_id": ids[name],
            "replicas": topic.replicas[number],
            "adding_replicas": topic.adding.get(number, []),
            "removing_replicas": topic.removing.get(number, []),
        }
        yield Record(RecordType.PARTITION, body | state)


def _refuse(reasons: Sequence[str]) -> None:
    if reasons:
        raise TopicsUnreadable(
            f"{len(reasons)} topics or partitions cannot be taken over, and without them nothing"
            f" is written: {such_as(reasons)}"
        )


def _states(
    topics: Mapping[str, TopicZNode], places: Sequence[TopicPartition], states: PartitionStates
) -> Iterator[Body]:
    """Yield what each partition's state says; one that never had a leader begins with the first of
    its replicas, and all of them in sync.
    """
    columns = (states.present, states.leader, states.leader_epoch, states.zk_version)
    rows = zip(*(column.tolist() for column in columns), states.recovery.tolist(), strict=True)
    ends = np.count_nonzero(states.isr >= 0, axis=1).tolist()
    isrs = states.isr.tolist()
    for (name, number), row, end, isr in zip(places, rows, ends, isrs, strict=True):
        present, leader, leader_epoch, version, recovery = row
        replicas = topics[name].replicas[number]
        yield {
            "isr": isr[:end] if present else replicas,
            "leader": leader if present else replicas[0],
            "leader_epoch": leader_epoch if present else 0,
            "partition_epoch": version if present else 0,
            "leader_recovery_state": recovery if present else 0,
        }
