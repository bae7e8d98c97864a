"""Events that ask for a topic's deletion, or tell what became of one."""

from __future__ import annotations

import numpy as np

from state.cluster.authority import Phase
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.legal import ReplicaState
from state.partitions.machine import move_replicas
from state.partitions.slot import Slot
from state.partitions.table import Deletion
from state.payloads.partitions import StopReplicaAnswered
from state.payloads.topics import DeleteTopicRequested, TopicDeletionRequested
from state.protocol_errors import ProtocolError
from state.replies import Api, reply
from state.topic_ids import topic_id_to_text


def on_topic_deletion_requested(
    slot: Slot, event: Event, requested: TopicDeletionRequested
) -> list[Decision]:
    """Delete a topic that is named under /admin/delete_topics
    (KafkaController.processTopicDeletion).

    The name of a topic that does not exist goes, as does every name where deletion is not allowed.
    What was asked of an earlier topic of that name says nothing about this one. A topic that is
    queued but not known is being read again.
    """
    name = requested.topic
    if slot.authority.phase is Phase.LOADING:
        slot.table.deletions.setdefault(name, Deletion())
    if slot.authority.phase is not Phase.ACTIVE:
        return []
    topic = slot.table.topic(name)
    if not slot.authority.delete_topics or (topic is None and name not in slot.table.deletions):
        return [deletion.unmark(slot, event.offset, name)]
    if topic is None:
        return []
    if requested.topic_id not in (None, topic_id_to_text(topic.topic_id)):
        return []
    deletion.mark(slot, [name])
    return deletion.decide(slot, Changes(slot.table, event.offset), name)


def on_delete_topic_requested(
    slot: Slot, event: Event, request: DeleteTopicRequested
) -> list[Decision]:
    """Mark a topic, in ZooKeeper too, and start to delete it; or answer why not.

    Source: KafkaApis.handleDeleteTopicsRequest. The answer goes out when the mark is written. A
    topic whose deletion has started is unknown to brokers, and so to those who ask.
    """
    error = _error(slot, request)
    fields = {"topic": request.topic, "topic_id": request.topic_id}
    answer = reply(event, Api.DELETE_TOPIC, request.request_id, error, **fields)
    if error is not ProtocolError.NONE or request.topic in slot.table.deletions:
        return [answer]
    marked = {"topic": request.topic, "epoch_zk_version": slot.authority.epoch_zk_version}
    deletion.mark(slot, [request.topic])
    return [
        json_decision(event.offset, DecisionKind.MARK_TOPIC_DELETION, marked),
        *deletion.decide(slot, Changes(slot.table, event.offset), request.topic),
        answer,
    ]


def _error(slot: Slot, request: DeleteTopicRequested) -> ProtocolError:
    if slot.authority.phase is not Phase.ACTIVE:
        return ProtocolError.NOT_CONTROLLER
    if not slot.authority.delete_topics:
        return ProtocolError.TOPIC_DELETION_DISABLED
    topic = slot.table.topic(request.topic)
    if request.topic_id is not None and (
        topic is None or topic_id_to_text(topic.topic_id) != request.topic_id
    ):
        return ProtocolError.UNKNOWN_TOPIC_ID
    marked = slot.table.deletions.get(request.topic)
    if topic is None or (marked is not None and marked.started):
        return ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    return ProtocolError.NONE


def on_stop_replica_answered(
    slot: Slot, event: Event, answered: StopReplicaAnswered
) -> list[Decision]:
    """Take replicas as deleted, or as failed, and go on with what that allows
    (KafkaController.processTopicDeletionStopReplicaResponseReceived).

    An answer about a replica that is not being deleted, or not any more, says nothing.
    """
    if (
        slot.authority.phase is not Phase.ACTIVE
        or slot.brokers.epoch(answered.broker_id) != answered.broker_epoch
        or answered.topic not in slot.table.deletions
    ):
        return []
    changes = Changes(slot.table, event.offset)
    rows = slot.table.rows
    at = slot.table.find(answered.topic, answered.partitions)
    asked = (rows.replicas == answered.broker_id) & (
        rows.replica_state == ReplicaState.DELETION_STARTED
    )
    done, failed = np.zeros((2, len(rows)), dtype=bool)
    done[at[(at >= 0) & (answered.errors == ProtocolError.NONE)]] = True
    failed[at[(at >= 0) & (answered.errors != ProtocolError.NONE)]] = True
    deletion.fail(slot, changes, asked & failed[:, None])
    move_replicas(slot, changes, asked & done[:, None], ReplicaState.DELETION_SUCCESSFUL)
    return deletion.decide(slot, changes, answered.topic)
