"""Reassignments that are asked for or cancelled, partition by partition.

Sources: Kafka 3.9's KafkaController.processApiPartitionReassignment, processZkPartitionReassignment
and validateReplicas. A request without an id comes from /admin/reassign_partitions; what it cannot
have is taken out of there. One that comes through the API is the later word and takes the place of
what is there.
"""

from __future__ import annotations

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.limits import REPLICAS_MAX
from state.matrix import NONE
from state.partitions import deletion
from state.partitions.assignment import reassignment_end
from state.partitions.changes import Changes
from state.partitions.not_granted import NotGranted, why_not_now
from state.partitions.reassignment import Motion, begin_reassignments, motion_of
from state.partitions.slot import Slot
from state.partitions.table import NO_LEADER
from state.payloads.admin import AlterReassignmentsRequested
from state.protocol_errors import ProtocolError
from state.replies import partitions_reply
from state.reply_bodies import ControllerApi, ReassignmentAnswer

_NOBODY = Motion(())


def on_alter_reassignments_requested(
    slot: Slot, event: Event, request: AlterReassignmentsRequested
) -> list[Decision]:
    """Set partitions of one topic in motion or take them back, and answer for each of them.

    What ZooKeeper asks of a topic that is being read again is asked again behind that.
    """
    if why_not_now(slot, request.topic) is not None:
        return partitions_reply(
            event, ControllerApi.ALTER_REASSIGNMENTS, request, ProtocolError.NOT_CONTROLLER, []
        )
    changes = Changes.about_topics(slot.table, {request.topic: event.offset})
    at = slot.table.find(request.topic, request.partitions)
    motions: dict[int, Motion] = {}
    answers: list[ReassignmentAnswer] = []
    ended: dict[int, list[int] | None] = {}
    by_znode = request.request_id is None
    asked = zip(request.partitions.tolist(), at.tolist(), request.targets, strict=True)
    for partition, row, target in asked:
        try:
            wanted = _motion(slot, request, row, target)
        except NotGranted as refusal:
            answers.append(_answer(partition, refusal.error, str(refusal)))
        else:
            if not by_znode or not _is_under_way(slot, row, wanted):
                motions[row] = wanted
            answers.append(_answer(partition, ProtocolError.NONE, None))
        accepted = answers[-1]["error"] == ProtocolError.NONE
        if accepted is not by_znode:
            ended[partition] = None
    begin_reassignments(
        slot, changes, np.array(list(motions), dtype=np.intp), list(motions.values())
    )
    found = deletion.finish_with_deletions(slot, changes)
    if ended:
        found.append(reassignment_end(slot.authority, event.offset, request.topic, ended))
    return [
        *found,
        *partitions_reply(
            event, ControllerApi.ALTER_REASSIGNMENTS, request, ProtocolError.NONE, answers
        ),
    ]


def _motion(
    slot: Slot, request: AlterReassignmentsRequested, row: int, target: tuple[int, ...] | None
) -> Motion:
    """Return the motion that is asked for; raises NotGranted."""
    known = row >= 0
    now = motion_of(slot.table.rows, row) if known else _NOBODY
    if target is not None:
        _check_replicas(slot, request, now, target)
    elif not now.in_progress:
        raise NotGranted(
            ProtocolError.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
        )
    if not known or _is_deleted(slot, request.topic, now):
        raise NotGranted(ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    wanted = now.towards(now.origin if target is None else target)
    if len(wanted.replicas) > REPLICAS_MAX:
        raise NotGranted(
            ProtocolError.INVALID_REPLICA_ASSIGNMENT,
            f"{len(wanted.replicas)} replicas, those that go counted, are more than the "
            f"{REPLICAS_MAX} a partition may have",
        )
    _check_leadership(slot, row, wanted)
    return wanted


def _is_deleted(slot: Slot, topic: str, now: Motion) -> bool:
    """Return whether a partition is to be deleted as it is. A motion that the deletion waits for
    may be changed or taken back: it may never end otherwise.
    """
    queued = slot.table.deletions.get(topic)
    return queued is not None and (queued.started or not now.in_progress)


def _check_replicas(
    slot: Slot, request: AlterReassignmentsRequested, now: Motion, target: tuple[int, ...]
) -> None:
    ours = slot.authority.controller_id
    if not target:
        problem = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        problem = f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    elif min(target) < 0 or ours in target:
        problem = f"Invalid broker id in replica list: {list(target)}"
    else:
        adding = sorted(set(target) - set(now.origin))
        live = slot.brokers.live_ids.tolist()
        if request.request_id is None or set(adding) <= set(live):
            return
        problem = (
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {adding}, live broker list: {live}"
        )
    raise NotGranted(ProtocolError.INVALID_REPLICA_ASSIGNMENT, problem)


def _check_leadership(slot: Slot, row: int, wanted: Motion) -> None:
    """Refuse a list that the partition would lose its leader with, or, while it has none, every
    replica that is in sync.
    """
    rows = slot.table.rows
    leader = int(rows.leader[row])
    if leader in wanted.replicas or not rows.has_state[row]:
        return
    online = slot.online_members(np.array([row]))[0]
    usable = rows.isr[row] != NONE if leader == NO_LEADER else online
    members = set(rows.isr[row][usable].tolist())
    if members.isdisjoint(wanted.replicas):
        loss = "its data" if leader == NO_LEADER else f"its leader {leader}"
        raise NotGranted(
            ProtocolError.INVALID_REPLICA_ASSIGNMENT,
            f"None of {list(wanted.replicas)} is in sync and alive: "
            f"the partition would lose {loss}",
        )


def _is_under_way(slot: Slot, row: int, wanted: Motion) -> bool:
    """Return whether the znode asks for what is being done already, as it does after a failover."""
    now = motion_of(slot.table.rows, row)
    return now.in_progress and now == wanted


def _answer(partition: int, error: ProtocolError, message: str | None) -> ReassignmentAnswer:
    return {"partition": partition, "error": error, "message": message}
