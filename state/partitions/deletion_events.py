"""Events that ask for a topic's deletion, or tell what became of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from state.bodies import MarkTopicDeletion
from state.cluster.authority import Phase
from state.cluster.delete_topic import delete_topic_reply
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.matrix import NONE
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.legal import ReplicaState
from state.partitions.machine import move_replicas
from state.partitions.not_granted import why_not_now
from state.partitions.slot import Slot
from state.payloads.partitions import StopReplicaAnswered
from state.payloads.topics import (
    DeleteTopicRequested,
    TopicDeletionRequested,
    TopicDeletionWithdrawn,
)
from state.protocol_errors import ProtocolError


def on_topic_deletion_requested(
    slot: Slot, event: Event, requested: TopicDeletionRequested
) -> list[Decision]:
    """Delete a topic that is named under /admin/delete_topics
    (KafkaController.processTopicDeletion).

    The name of a topic that does not exist goes, as does every name where deletion is not allowed.
    What was asked of an earlier topic of that name says nothing about this one. One that is being
    read again is queued until it is known.
    """
    if slot.authority.phase is Phase.LOADING:
        deletion.mark(slot, [requested.topic])
    if not slot.authority.is_active:
        return []
    return deletions_requested(slot, [(event, requested)])


def deletions_requested(
    slot: Slot, asked: Sequence[tuple[Event, TopicDeletionRequested]]
) -> list[Decision]:
    """Take names of different topics, as `on_topic_deletion_requested` does."""
    found, offsets = [], {}
    for event, requested in asked:
        name = requested.topic
        topic = slot.table.topic(name)
        if slot.config.delete_topics and topic is None and name in slot.table.awaited:
            deletion.mark(slot, [name])
        elif not slot.config.delete_topics or _means_nothing(slot, requested):
            found.append(deletion.unmark(slot, event.offset, name))
        elif topic is not None and topic.is_meant(requested.topic_id):
            deletion.mark(slot, [name])
            offsets[name] = event.offset
    return [*found, *_decide(slot, offsets)]


def _means_nothing(slot: Slot, requested: TopicDeletionRequested) -> bool:
    """Return whether no topic was there with the mark, and none is queued since: one without an id
    does not mean a topic that we created and nobody has seen yet.
    """
    topic = slot.table.topic(requested.topic)
    unknown = topic is None or (requested.topic_id is None and not topic.seen)
    return unknown and requested.topic not in slot.table.deletions


def _decide(slot: Slot, offsets: Mapping[str, int]) -> list[Decision]:
    if not offsets:
        return []
    return deletion.finish_with_deletions(slot, Changes.about_topics(slot.table, offsets))


def on_topic_deletion_withdrawn(
    slot: Slot, event: Event, withdrawn: TopicDeletionWithdrawn
) -> list[Decision]:
    """Let a topic live whose deletion waits for a reassignment to end.

    Nothing was done about it yet, so nothing is to be decided. Every other deletion goes on: it has
    begun, or a load found it, and another controller may have begun it. The name of a topic that we
    deleted goes after it.
    """
    table = slot.table
    topic, queued = table.topic(withdrawn.topic), table.deletions.get(withdrawn.topic)
    if (
        slot.authority.is_active
        and topic is not None
        and topic.is_meant(withdrawn.topic_id)
        and queued is not None
        and not queued.started
        and topic.name in table.deletions_held_by_reassignment()
    ):
        del table.deletions[topic.name]
    return []


def on_delete_topic_requested(
    slot: Slot, event: Event, request: DeleteTopicRequested
) -> list[Decision]:
    """Mark a topic, in ZooKeeper too, and start to delete it; or answer why not.

    Source: KafkaApis.handleDeleteTopicsRequest. The answer goes out when the mark is written. A
    topic whose deletion has started is unknown to brokers, and so to those who ask.
    """
    return delete_topics_requested(slot, [(event, request)])


def delete_topics_requested(
    slot: Slot, asked: Sequence[tuple[Event, DeleteTopicRequested]]
) -> list[Decision]:
    """Take requests for different topics, as `on_delete_topic_requested` does."""
    marks, answers, offsets = [], [], {}
    for event, request in asked:
        name = request.topic
        error = _error(slot, request)
        answers.append(delete_topic_reply(event, request, error or ProtocolError.NONE))
        if error is None and name not in slot.table.deletions:
            marked: MarkTopicDeletion = {"topic": name, **slot.authority.fence()}
            kind = DecisionKind.MARK_TOPIC_DELETION
            marks.append(json_decision(event.offset, kind, marked))
            deletion.mark(slot, [name])
            offsets[name] = event.offset
    return [*marks, *_decide(slot, offsets), *answers]


def _error(slot: Slot, request: DeleteTopicRequested) -> ProtocolError | None:
    if why_not_now(slot, request.topic) is not None:
        return ProtocolError.NOT_CONTROLLER
    if not slot.config.delete_topics:
        return ProtocolError.TOPIC_DELETION_DISABLED
    topic = slot.table.topic(request.topic)
    if request.topic_id is not None and (topic is None or not topic.is_meant(request.topic_id)):
        return ProtocolError.UNKNOWN_TOPIC_ID
    marked = slot.table.deletions.get(request.topic)
    if topic is None or (marked is not None and marked.started):
        return ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    return None


def on_stop_replica_answered(
    slot: Slot, event: Event, answered: StopReplicaAnswered
) -> list[Decision]:
    """Take replicas as deleted, or as failed, and go on with what that allows
    (KafkaController.processTopicDeletionStopReplicaResponseReceived).

    An answer about a replica that is not being deleted, or not any more, says nothing.
    """
    return stops_answered(slot, [(event, answered)])


def stops_answered(
    slot: Slot, asked: Sequence[tuple[Event, StopReplicaAnswered]]
) -> list[Decision]:
    """Take answers about different topics, as `on_stop_replica_answered` does."""
    offsets = {one.topic: event.offset for event, one in asked if _says_something(slot, one)}
    if not offsets:
        return []
    changes = Changes.about_topics(slot.table, offsets)
    rows = slot.table.rows
    broker = np.full(len(rows), NONE, dtype=np.int32)
    done, failed = np.zeros((2, len(rows)), dtype=bool)
    for _, one in asked:
        if one.topic in offsets:
            at = slot.table.find(one.topic, one.partitions)
            known = at >= 0
            broker[at[known]] = one.broker_id
            done[at[known & (one.errors == ProtocolError.NONE)]] = True
            failed[at[known & (one.errors != ProtocolError.NONE)]] = True
    deleting = rows.replica_state == ReplicaState.DELETION_STARTED
    deleting &= (rows.replicas == broker[:, None]) & (rows.replicas != NONE)
    deletion.fail(slot, changes, deleting & failed[:, None])
    move_replicas(slot, changes, deleting & done[:, None], ReplicaState.DELETION_SUCCESSFUL)
    return deletion.finish_with_deletions(slot, changes)


def _says_something(slot: Slot, answered: StopReplicaAnswered) -> bool:
    return (
        slot.authority.is_active
        and slot.brokers.epoch(answered.broker_id) == answered.broker_epoch
        and answered.topic in slot.table.deletions
    )
