"""CreatePartitions for one topic: validation, placement, and the new partitions.

Sources: Kafka 3.9's ZkAdminManager.createPartitions,
AdminZkClient.createNewPartitionsAssignment.
"""

from __future__ import annotations

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.matrix import Int32s, pad_rows, unpad
from state.partitions.changes import Changes
from state.partitions.not_granted import NotGranted, require_now
from state.partitions.placement import PlacementError, place_replicas
from state.partitions.rows import new_columns
from state.partitions.slot import Slot
from state.partitions.starting import create_partitions
from state.payloads.topics import CreatePartitionsRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControllerApi, CreatePartitionsReply


def on_create_partitions_requested(
    slot: Slot, event: Event, request: CreatePartitionsRequested
) -> list[Decision]:
    """Add partitions to a topic and bring them online, or answer why not; validate_only changes
    nothing.
    """
    try:
        require_now(slot, request.topic)
        existing = _existing(slot, request.topic)
        _check_count(len(existing), request.partitions)
        replicas = _replicas(slot, request, existing)
    except NotGranted as refusal:
        return [_reply(event, request, refusal.error, str(refusal))]
    answer = _reply(event, request, ProtocolError.NONE, None)
    if request.validate_only:
        return [answer]
    return [*_grow(slot, event, request.topic, replicas), answer]


def _existing(slot: Slot, topic: str) -> Int32s:
    """Return the present replicas int32[n, R] in partition order."""
    if topic in slot.table.deletions:
        raise NotGranted(ProtocolError.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    rows, at = slot.table.rows, slot.table.rows_of(topic)
    if len(at) == 0:
        raise NotGranted(
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist."
        )
    if rows.in_motion(at).any():
        raise NotGranted(
            ProtocolError.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{topic}'.",
        )
    if not np.array_equal(rows.partition[at], np.arange(len(at))):
        raise NotGranted(
            ProtocolError.UNKNOWN_SERVER_ERROR,
            f"the partitions of topic '{topic}' are not consecutive from 0",
        )
    return rows.replicas[at]


def _check_count(present: int, wanted: int) -> None:
    if wanted < present:
        raise NotGranted(
            ProtocolError.INVALID_PARTITIONS,
            f"Topic currently has {present} partitions, "
            f"which is higher than the requested {wanted}.",
        )
    if wanted == present:
        raise NotGranted(
            ProtocolError.INVALID_PARTITIONS, f"Topic already has {present} partitions."
        )


def _replicas(slot: Slot, request: CreatePartitionsRequested, existing: Int32s) -> Int32s:
    first = unpad(existing[0])
    wanted = request.partitions - len(existing)
    if request.assignment is not None:
        _check_assignment(slot, request.assignment, wanted, len(first))
        return pad_rows(request.assignment)
    try:
        return place_new_partitions(slot.brokers.racks, wanted, first, len(existing))
    except PlacementError as failure:
        raise NotGranted(failure.error, str(failure)) from None


def place_new_partitions(
    racks: dict[int, str | None], count: int, first_replicas: list[int], first_partition: int
) -> Int32s:
    """Return int32[count, R] for partitions from first_partition on; raises PlacementError.

    Nothing is drawn: the place of partition 0's first replica among the brokers is where to start,
    and the shift.
    """
    brokers = sorted(racks)
    leads = first_replicas[0] if first_replicas else -1
    start = next((at for at, broker in enumerate(brokers) if broker >= leads), 0)
    return place_replicas(
        racks,
        count,
        len(first_replicas),
        start_index=start,
        shift=start,
        first_partition=first_partition,
    )


def _check_assignment(
    slot: Slot, assignment: tuple[tuple[int, ...], ...], wanted: int, factor: int
) -> None:
    unknown = sorted({id_ for ids in assignment for id_ in ids} - slot.brokers.by_id.keys())
    problems = [f"Unknown broker(s) in replica assignment: {unknown}."] if unknown else []
    if len(assignment) != wanted:
        problems.append(
            f"Increasing the number of partitions by {wanted} "
            f"but {len(assignment)} assignments provided."
        )
    for ids in assignment:
        if len(set(ids)) != len(ids):
            problems.append(f"Duplicate brokers not allowed in replica assignment: {list(ids)}")
        if len(ids) != factor:
            problems.append(f"partition 0 has {factor} replicas, a new one {len(ids)}")
    if problems:
        raise NotGranted(ProtocolError.INVALID_REPLICA_ASSIGNMENT, problems[0])


def _grow(slot: Slot, event: Event, name: str, replicas: Int32s) -> list[Decision]:
    topic = slot.table.topic_index(name)
    assert topic is not None
    present = len(slot.table.rows_of(name))
    numbers = np.arange(present, present + len(replicas), dtype=np.int32)
    slot.table.add_rows(new_columns(topic, numbers, replicas))
    changes = Changes.about_topics(slot.table, {name: event.offset})
    changes.rewrite_assignment(slot.authority, topic)
    create_partitions(slot, changes, slot.table.rows_of(name)[present:])
    return changes.finish(slot.authority, slot.brokers)


def _reply(
    event: Event, request: CreatePartitionsRequested, error: ProtocolError, message: str | None
) -> Decision:
    body: CreatePartitionsReply = {
        "request_id": request.request_id,
        "api": ControllerApi.CREATE_PARTITIONS,
        "error": error,
        "topic": request.topic,
        "message": message,
    }
    return reply(event, body)
