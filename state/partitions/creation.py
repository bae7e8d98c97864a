"""CreateTopics for one topic: validation, placement, and the partitions it starts with.

The topic's slot knows every topic whose name could collide with the new one, see `state.routing`.
Sources: Kafka 3.9's ZkAdminManager, AdminZkClient and org.apache.kafka.common.internals.Topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from state.bodies import CreateTopic
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.limits import REPLICAS_MAX
from state.matrix import Int32s, pad_rows, unpad_rows
from state.partitions.changes import Changes
from state.partitions.not_granted import NotGranted, require_now
from state.partitions.placement import PlacementError, place_replicas
from state.partitions.rows import new_columns
from state.partitions.slot import Slot
from state.partitions.starting import create_partitions
from state.partitions.table import Topic
from state.payloads.topics import CreateTopicRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControllerApi, CreateTopicReply
from state.topic_ids import topic_id_to_text
from state.topic_overrides import UNCLEAN, unclean_of

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_MAX_NAME_LENGTH = 249


def on_create_topic_requested(
    slot: Slot, event: Event, request: CreateTopicRequested
) -> list[Decision]:
    """Create a topic with all its partitions online, or answer why not; validate_only changes
    nothing.
    """
    try:
        require_now(slot, request.topic)
        _check_name(slot, request.topic)
        replicas = _replicas(slot, request)
    except NotGranted as refusal:
        return [
            _reply(event, request, refusal.error, str(refusal), np.empty((0, 0), dtype=np.int32))
        ]
    answer = _reply(event, request, ProtocolError.NONE, None, replicas)
    if request.validate_only:
        return [answer]
    return [*_create(slot, event, request, replicas), answer]


def name_error(name: str) -> str | None:
    """Return why no topic may have this name; None when one may (Topic.validate)."""
    if is_legal_name(name):
        return None
    return (
        f"topic name {name!r} is illegal: 1 to {_MAX_NAME_LENGTH} characters of a-z, A-Z, 0-9, "
        "'.', '_' and '-', but not '.' or '..'"
    )


def is_legal_name(name: str) -> bool:
    """Return whether a topic may have this name (Topic.validate)."""
    return (
        name not in (".", "..")
        and len(name) <= _MAX_NAME_LENGTH
        and _LEGAL_NAME.fullmatch(name) is not None
    )


def _check_name(slot: Slot, name: str) -> None:
    if (error := name_error(name)) is not None:
        raise NotGranted(ProtocolError.INVALID_TOPIC_EXCEPTION, error)
    if name in slot.table.deletions:
        raise NotGranted(
            ProtocolError.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
        )
    if slot.table.topic_index(name) is not None:
        raise NotGranted(ProtocolError.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    for other in _colliding(name, sorted(slot.table.awaited)):
        require_now(slot, other)
    colliding = _colliding(name, [topic.name for topic in slot.table.topics])
    if colliding:
        raise NotGranted(
            ProtocolError.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
        )


def _colliding(name: str, others: Iterable[str]) -> list[str]:
    """Return the others whose metrics would have the same names (Topic.hasCollision)."""
    if "." not in name and "_" not in name:
        return []
    metric_name = name.replace(".", "_")
    return [other for other in others if other.replace(".", "_") == metric_name]


def _replicas(slot: Slot, request: CreateTopicRequested) -> Int32s:
    if request.assignment is not None:
        return _assigned(slot, request.assignment)
    racks = slot.brokers.racks
    try:
        return place_replicas(
            racks,
            request.partitions,
            request.replication_factor,
            start_index=request.start_index % max(len(racks), 1),
            shift=request.shift % max(len(racks), 1),
        )
    except PlacementError as failure:
        raise NotGranted(failure.error, str(failure)) from None


def _assigned(slot: Slot, assignment: dict[int, tuple[int, ...]]) -> Int32s:
    """Check a manual assignment: partitions 0..n-1, no broker twice, all equally long.

    A broker that is down, or never was there, may be named: its replica waits for it. This node
    hosts nothing.
    """
    if sorted(assignment) != list(range(len(assignment))) or not assignment:
        raise NotGranted(
            ProtocolError.INVALID_REPLICA_ASSIGNMENT,
            f"partitions must be consecutive from 0, not {sorted(assignment)}",
        )
    factors = {len(ids) for ids in assignment.values()}
    if factors == {0} or len(factors) != 1:
        raise NotGranted(
            ProtocolError.INVALID_REPLICA_ASSIGNMENT,
            f"all partitions need the same number of replicas, at least 1, not {sorted(factors)}",
        )
    if max(factors) > REPLICAS_MAX:
        raise NotGranted(
            ProtocolError.INVALID_REPLICA_ASSIGNMENT,
            f"{max(factors)} replicas are more than the {REPLICAS_MAX} a partition may have",
        )
    for partition, ids in sorted(assignment.items()):
        if len(set(ids)) != len(ids):
            raise NotGranted(
                ProtocolError.INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} names a broker twice: {list(ids)}",
            )
        if min(ids) < 0 or slot.authority.controller_id in ids:
            raise NotGranted(
                ProtocolError.INVALID_REPLICA_ASSIGNMENT,
                f"partition {partition} names what is no broker: {list(ids)}",
            )
    return pad_rows([assignment[partition] for partition in range(len(assignment))])


def _create(
    slot: Slot, event: Event, request: CreateTopicRequested, replicas: Int32s
) -> list[Decision]:
    topic = Topic(
        request.topic,
        request.topic_id,
        unclean_of(request.configs.get(UNCLEAN)),
        zk_version=0,
        min_insync=request.min_insync,
        seen=False,
    )
    numbers = np.arange(len(replicas), dtype=np.int32)
    slot.table.add_rows(new_columns(slot.table.add_topic(topic), numbers, replicas))
    changes = Changes.about_topics(slot.table, {request.topic: event.offset})
    create_partitions(slot, changes, slot.table.rows_of(request.topic))
    body: CreateTopic = {
        "request_id": request.request_id,
        "topic": request.topic,
        "topic_id": topic_id_to_text(request.topic_id),
        "configs": request.configs,
        "assignment": {str(partition): ids for partition, ids in enumerate(unpad_rows(replicas))},
        "controller_epoch": slot.authority.epoch,
        **slot.authority.fence(),
    }
    created = json_decision(event.offset, DecisionKind.CREATE_TOPIC, body)
    return [created, *changes.finish(slot.authority, slot.brokers)]


def _reply(
    event: Event,
    request: CreateTopicRequested,
    error: ProtocolError,
    message: str | None,
    replicas: Int32s,
) -> Decision:
    body: CreateTopicReply = {
        "request_id": request.request_id,
        "api": ControllerApi.CREATE_TOPIC,
        "error": error,
        "topic": request.topic,
        "topic_id": topic_id_to_text(request.topic_id),
        "message": message,
        "partitions": len(replicas),
        "replication_factor": replicas.shape[1],
        "configs": request.configs,
    }
    return reply(event, body)
