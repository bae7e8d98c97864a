"""Elections that an administrator asks for, partition by partition.

Source: Kafka 3.9's KafkaController.processReplicaLeaderElection. A partition that never had a
leader counts as one that has none now.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.matrix import Bools, Int32s, Rows
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.election import Strategy
from state.partitions.leader_rebalance import preferred_replicas
from state.partitions.legal import PartitionState
from state.partitions.log_ends import take_log_ends
from state.partitions.machine import move_partitions
from state.partitions.not_granted import why_not_now
from state.partitions.reassignment import complete_reassignments
from state.partitions.slot import Slot
from state.payloads.admin import NOT_ELECTED, ElectionType, ElectLeadersRequested
from state.protocol_errors import ProtocolError
from state.replies import partitions_reply
from state.reply_bodies import ControllerApi, PartitionError

_STRATEGY_OF: Mapping[ElectionType, Strategy] = {
    ElectionType.PREFERRED: Strategy.PREFERRED,
    ElectionType.UNCLEAN: Strategy.UNCLEAN,
}


def on_elect_leaders_requested(
    slot: Slot, event: Event, request: ElectLeadersRequested
) -> list[Decision]:
    """Elect for the partitions that need it, and answer with an error code for each."""
    if why_not_now(slot, request.topic) is not None:
        return partitions_reply(
            event, ControllerApi.ELECT_LEADERS, request, ProtocolError.NOT_CONTROLLER, []
        )
    changes = Changes.about_topics(slot.table, {request.topic: event.offset})
    at = slot.table.find(request.topic, request.partitions)
    if request.logs is not None:
        take_log_ends(slot, changes, at, request.logs)
    errors = np.full(len(at), ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, dtype=np.int32)
    if request.topic in slot.table.deletions:
        errors[at >= 0] = ProtocolError.INVALID_TOPIC_EXCEPTION
    else:
        errors[at >= 0] = _elect(slot, changes, at[at >= 0], request.election_type)
    answers: list[PartitionError] = [
        {"partition": partition, "error": error}
        for partition, error in zip(request.partitions.tolist(), errors.tolist(), strict=True)
    ]
    complete_reassignments(slot, changes, at[at >= 0])
    found = deletion.finish_with_deletions(slot, changes)
    return [
        *found,
        *partitions_reply(event, ControllerApi.ELECT_LEADERS, request, ProtocolError.NONE, answers),
    ]


def _elect(slot: Slot, changes: Changes, at: Rows, election_type: ElectionType) -> Int32s:
    """Elect for rows of one topic and return int32[k] error codes."""
    leader = slot.table.rows.leader[at]
    preferred = preferred_replicas(slot, at)
    needed = needs_election(election_type, leader, preferred, slot.brokers.live(leader))
    move_partitions(slot, changes, at[needed], PartitionState.ONLINE, _STRATEGY_OF[election_type])
    errors = np.where(changes.write[at], ProtocolError.NONE, NOT_ELECTED[election_type])
    return np.where(needed, errors, ProtocolError.ELECTION_NOT_NEEDED).astype(np.int32)


def needs_election(
    election_type: ElectionType, leader: Int32s, preferred: Int32s, live: Bools
) -> Bools:
    """Return which partitions such an election is for.

    preferred: the first replica, -1 where there is none. live: whether the leader is a live broker.
    """
    if election_type is ElectionType.PREFERRED:
        not_preferred: Bools = leader != preferred
        return not_preferred
    return ~live
