"""What brokers' answers tell the machines, as events for the log."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from state.event_kinds import EventKind
from state.matrix import any_in_row
from state.partitions.changes import EPOCH_DURING_DELETE
from state.protocol_errors import ProtocolError
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.sinks.channel import NO_ERRORS, Answer
from streaming.wire.apis import ApiKey

# About a partition the same code says that the leader epoch is known already. What a failed disk
# means is decided; anything else nobody waits for.
_EXPECTED = (
    ProtocolError.NONE,
    ProtocolError.STALE_CONTROLLER_EPOCH,
    ProtocolError.KAFKA_STORAGE_ERROR,
)


def answer_events(answer: Answer, image: ClusterImage) -> list[NewRecord]:
    """Return what a broker's answer tells the machines: stop_replica_answered about the replicas of
    topics in deletion, and leader_and_isr_answered for the topics whose replicas failed, or were
    known as failed.

    An answer without a storage error says nothing new about a replica that was healthy before, and
    one of a broker that has left or come back since says nothing about its replicas at all.
    """
    if answer.request.api is ApiKey.STOP_REPLICA:
        return deletion_events(answer)
    if answer.request.api is not ApiKey.LEADER_AND_ISR or answer.body["error_code"]:
        return []
    registered = image.brokers.get(answer.broker_id)
    if registered is None or registered.epoch != answer.broker_epoch:
        return []
    failed = _known_as_failed(image, answer.broker_id)
    if answer.body is NO_ERRORS:
        found = _asked_without_error(answer, failed)
    else:
        found = _errors_by_topic(answer)
    return [
        _answered(EventKind.LEADER_AND_ISR_ANSWERED, answer, topic, partitions)
        for topic, partitions in found.items()
        if topic in failed or ProtocolError.KAFKA_STORAGE_ERROR in partitions.values()
    ]


def deletion_events(answer: Answer) -> list[NewRecord]:
    """Return stop_replica_answered for the replicas that a broker was to delete with their topics.

    An error about the request as a whole counts for each of them, unless it says that broker or
    controller are not what they were: then another event does.
    """
    rows = answer.request.rows
    asked = np.flatnonzero(rows.delete_partition & (rows.leader_epoch == EPOCH_DURING_DELETE))
    whole = answer.body["error_code"]
    if whole in (ProtocolError.STALE_CONTROLLER_EPOCH, ProtocolError.STALE_BROKER_EPOCH):
        return []
    errors = {
        (entry["topic_name"], entry["partition_index"]): entry["error_code"]
        for entry in answer.body["partition_errors"]
    }
    found: dict[str, dict[int, int]] = {}
    for row in asked.tolist():
        topic, partition = rows.topic_names[rows.topic_index[row]], int(rows.partition[row])
        error = whole or errors.get((topic, partition), ProtocolError.UNKNOWN_SERVER_ERROR)
        found.setdefault(topic, {})[partition] = int(error)
    return [
        _answered(EventKind.STOP_REPLICA_ANSWERED, answer, topic, partitions)
        for topic, partitions in found.items()
    ]


def refused_replicas(answer: Answer) -> dict[str, dict[int, int]]:
    """Return the errors of a LeaderAndIsr, by topic and partition, of which no event tells.

    INCONSISTENT_TOPIC_ID is a replica left by an earlier topic of that name: it was moved
    away while its broker was dead. Until somebody deletes it the broker does not host this one.
    """
    whole = answer.body["error_code"]
    if answer.request.api is not ApiKey.LEADER_AND_ISR or answer.body is NO_ERRORS or whole:
        return {}
    found = {
        topic: {number: error for number, error in errors.items() if error not in _EXPECTED}
        for topic, errors in _errors_by_topic(answer).items()
    }
    return {topic: errors for topic, errors in found.items() if errors}


def _answered(kind: EventKind, answer: Answer, topic: str, partitions: dict[int, int]) -> NewRecord:
    payload = {
        "broker_id": answer.broker_id,
        "broker_epoch": answer.broker_epoch,
        "topic": topic,
        "partitions": list(partitions),
        "errors": list(partitions.values()),
    }
    return event(kind, payload, topic)


def _errors_by_topic(answer: Answer) -> dict[str, dict[int, int]]:
    """Return error codes by topic and partition, from the flat list or the one by topic id, which
    is asked for only where every topic has one.
    """
    found: dict[str, dict[int, int]] = {}
    for entry in answer.body["partition_errors"] or ():
        found.setdefault(entry["topic_name"], {})[entry["partition_index"]] = entry["error_code"]
    rows = answer.request.rows
    names = {bytes(rows.topic_ids[at]): name for at, name in enumerate(rows.topic_names)}
    for topic in answer.body["topics"] or ():
        name = names.get(topic["topic_id"].bytes) if topic["topic_id"] else None
        if name is not None:
            for entry in topic["partition_errors"]:
                found.setdefault(name, {})[entry["partition_index"]] = entry["error_code"]
    return found


def _asked_without_error(answer: Answer, topics: Set[str]) -> dict[str, dict[int, int]]:
    """Return no error for every partition of some topics that the broker was asked about."""
    rows = answer.request.rows
    found: dict[str, dict[int, int]] = {}
    for at in np.flatnonzero([name in topics for name in rows.topic_names]).tolist():
        partitions = rows.partition[rows.topic_index == at].tolist()
        if partitions:
            found[rows.topic_names[at]] = dict.fromkeys(partitions, 0)
    return found


def _known_as_failed(image: ClusterImage, broker_id: int) -> set[str]:
    """Return the topics of which the image shows a replica of the broker as offline."""
    if not len(image):
        return set()
    hosted = image.columns["replicas"] == broker_id
    return image.topics_at(any_in_row(hosted & image.columns["offline"]))
