"""ISR changes that leaders ask for with AlterPartition."""

from __future__ import annotations

from typing import Any

import numpy as np

from state.cluster.authority import Phase
from state.decisions import Decision, DecisionKind, Rule, json_decision
from state.events import Event
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.matrix import (
    NONE,
    Bools,
    Int32s,
    Rows,
    all_in_row,
    contains,
    equal_lists,
    lengths,
    unpad,
)
from state.partitions.reassignment import complete_reassignments
from state.partitions.slot import Slot
from state.payloads import AlterPartitionRequested
from state.protocol_errors import ProtocolError

_TOPIC_IDS_SINCE = 2
_INELIGIBLE_REPLICA_SINCE = 2
_UNKNOWN_ERRORS_BREAK_LEADERS_BELOW = 1


def on_alter_partition_requested(
    slot: Slot, event: Event, request: AlterPartitionRequested
) -> list[Decision]:
    """Accept or reject new ISRs for partitions of one topic and answer the leader.

    Source: KafkaController.tryProcessAlterPartition. An accepted ISR keeps its leader epoch and
    needs no LeaderAndIsr. A request of version 0 (brokers of 2.8) never gets an error that such
    brokers cannot handle: it gets INVALID_UPDATE_VERSION, and the leader epoch is bumped so that
    the leader starts afresh.
    """
    top = _request_error(slot, request)
    if top is not ProtocolError.NONE:
        return [_reply(event, request, top, [])]
    changes = Changes(slot.table, event.offset)
    at = slot.table.find(request.topic, request.partitions)
    errors = _errors(slot, request, at)
    accepted = (errors == ProtocolError.NONE) & ~_already_so(slot, request, at)
    _accept(slot, changes, request, at, accepted)
    complete_reassignments(slot, changes, at[errors == ProtocolError.NONE])
    if request.version < _UNKNOWN_ERRORS_BREAK_LEADERS_BELOW:
        errors = _soften(slot, changes, at, errors)
    found = deletion.decide(slot, changes, request.topic)
    partitions = [
        _answer(slot, int(row), partition, error)
        for row, partition, error in zip(
            at, request.partitions.tolist(), errors.tolist(), strict=True
        )
    ]
    return [*found, _reply(event, request, ProtocolError.NONE, partitions)]


def _request_error(slot: Slot, request: AlterPartitionRequested) -> ProtocolError:
    if slot.authority.phase is not Phase.ACTIVE:
        return ProtocolError.NOT_CONTROLLER
    if slot.brokers.epoch(request.broker_id) != request.broker_epoch:
        return ProtocolError.STALE_BROKER_EPOCH
    if not np.isin(request.recovery, (0, 1)).all():
        return ProtocolError.UNKNOWN_SERVER_ERROR
    return ProtocolError.NONE


def _already_so(slot: Slot, request: AlterPartitionRequested, at: Rows) -> Bools:
    rows = slot.table.rows
    if len(rows) == 0:
        return np.zeros(len(at), dtype=bool)
    same: Bools = (
        (at >= 0)
        & (rows.leader[at] == request.broker_id)
        & (rows.leader_epoch[at] == request.leader_epoch)
        & (rows.recovery[at] == request.recovery)
        & equal_lists(rows.isr[at], request.isr)
        & (request.partition_epoch <= rows.zk_version[at])
    )
    return same


def _errors(slot: Slot, request: AlterPartitionRequested, at: Rows) -> Int32s:
    """Return int32[k] protocol errors; the first condition that holds wins."""
    rows = slot.table.rows
    if len(rows) == 0:
        return np.full(len(at), ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, dtype=np.int32)
    known = (at >= 0) & rows.has_leadership[at]
    newer = (request.partition_epoch > rows.zk_version[at]) | (
        request.leader_epoch > rows.leader_epoch[at]
    )
    recovering = request.recovery == 1
    online = all_in_row(slot.online(at, request.isr) | (request.isr == NONE))
    members = lengths(request.isr)
    ineligible = (
        ProtocolError.INELIGIBLE_REPLICA
        if request.version >= _INELIGIBLE_REPLICA_SINCE
        else ProtocolError.OPERATION_NOT_ATTEMPTED
    )
    conditions = [
        (~known, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION),
        (newer, ProtocolError.NOT_CONTROLLER),
        (request.leader_epoch < rows.leader_epoch[at], ProtocolError.FENCED_LEADER_EPOCH),
        (_already_so(slot, request, at), ProtocolError.NONE),
        (request.partition_epoch < rows.zk_version[at], ProtocolError.INVALID_UPDATE_VERSION),
        (recovering & (members > 1), ProtocolError.INVALID_REQUEST),
        (recovering & (rows.recovery[at] == 0), ProtocolError.INVALID_REQUEST),
        (rows.leader[at] != request.broker_id, ProtocolError.INVALID_REQUEST),
        (_impossible(slot, request, at), ProtocolError.INVALID_REQUEST),
        (~online, ineligible),
    ]
    return np.select(
        [condition for condition, _ in conditions],
        [np.int32(error) for _, error in conditions],
        default=np.int32(ProtocolError.NONE),
    ).astype(np.int32)


def _impossible(slot: Slot, request: AlterPartitionRequested, at: Rows) -> Bools:
    """Return bool[k]: no leader could mean this ISR: it lacks itself, or has a stranger in it."""
    rows = slot.table.rows
    leader = np.full((len(at), 1), request.broker_id, dtype=np.int32)
    assigned = contains(rows.replicas[at], request.isr) | (request.isr == NONE)
    impossible: Bools = ~contains(request.isr, leader)[:, 0] | ~all_in_row(assigned)
    return impossible


def _accept(
    slot: Slot, changes: Changes, request: AlterPartitionRequested, at: Rows, accepted: Bools
) -> None:
    rows = slot.table.rows
    taken = at[accepted]
    rows.recovery[taken] = request.recovery[accepted]
    slot.table.replace_isr(taken, request.isr[accepted])
    changes.mark_written(taken, Rule.ISR_ALTERED_BY_LEADER, bump=False)


def _soften(slot: Slot, changes: Changes, at: Rows, errors: Int32s) -> Int32s:
    """Replace errors that brokers of 2.8 never recover from, and bump the leader epoch of those
    partitions.
    """
    deadly = (errors == ProtocolError.OPERATION_NOT_ATTEMPTED) | (
        errors == ProtocolError.INVALID_REQUEST
    )
    rows = at[deadly]
    changes.recipients[rows] |= slot.online_replicas(rows)
    changes.mark_written(rows, Rule.LEADER_EPOCH_BUMPED)
    return np.where(deadly, np.int32(ProtocolError.INVALID_UPDATE_VERSION), errors)


def _answer(slot: Slot, row: int, partition: int, error: int) -> dict[str, Any]:
    if error != ProtocolError.NONE:
        return {"partition": partition, "error": error}
    rows = slot.table.rows
    return {
        "partition": partition,
        "error": error,
        "leader": int(rows.leader[row]),
        "leader_epoch": int(rows.leader_epoch[row]),
        "isr": unpad(rows.isr[row]),
        "recovery": int(rows.recovery[row]),
        "partition_epoch": int(rows.zk_version[row]),
    }


def _reply(
    event: Event,
    request: AlterPartitionRequested,
    error: ProtocolError,
    partitions: list[dict[str, Any]],
) -> Decision:
    body = {
        "request_id": request.request_id,
        "api": "alter_partition",
        "error": int(error),
        "topic": request.topic,
        "topic_id": request.topic_id,
        "partitions": partitions,
    }
    return json_decision(event.offset, DecisionKind.REPLY, body)
