"""Leader epochs raised by two: one to announce to brokers, and a newer one kept in ZooKeeper.

A node outside the cluster that is announced as leader of a topic's partitions is so one
leader epoch behind ZooKeeper's. Two are needed at first: the announced one must be newer than what
brokers know, and ZooKeeper's newer than that, so that brokers follow the leader that
ZooKeeper names as soon as another controller announces it.
"""

from __future__ import annotations

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER
from state.payloads.partitions import RaiseLeaderEpochsRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControllerApi, RaiseLeaderEpochsReply


def on_raise_leader_epochs_requested(
    slot: Slot, event: Event, request: RaiseLeaderEpochsRequested
) -> list[Decision]:
    """Raise the leader epoch of the topic's partitions that have a leader, and tell all replicas.

    Partitions without a leader keep theirs: the election that ends this raises it.
    """
    if not slot.authority.is_active:
        return [_reply(event, request, ProtocolError.NOT_CONTROLLER)]
    rows = slot.table.rows
    changes = Changes.about_topics(slot.table, {request.topic: event.offset})
    at = slot.table.rows_of(request.topic)
    at = at[rows.has_state[at] & (rows.leader[at] != NO_LEADER)]
    if not len(at) or request.topic in slot.table.deletions:
        return [_reply(event, request, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION)]
    rows.leader_epoch[at] += np.int32(1)  # the first of two; `Changes` adds the second
    changes.raise_leader_epoch(at, slot.registered_replicas(at))
    found = deletion.finish_with_deletions(slot, changes)
    return [*found, _reply(event, request, ProtocolError.NONE)]


def _reply(event: Event, request: RaiseLeaderEpochsRequested, error: ProtocolError) -> Decision:
    body: RaiseLeaderEpochsReply = {
        "request_id": request.request_id,
        "api": ControllerApi.RAISE_LEADER_EPOCHS,
        "error": error,
        "topic": request.topic,
    }
    return reply(event, body)
