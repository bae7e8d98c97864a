"""ISR changes that leaders ask for with AlterPartition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from state.cluster.alter_partition import alter_partition_reply, alter_partition_sender_error
from state.decisions import Decision, Rule
from state.events import Event
from state.matrix import (
    NONE,
    Bools,
    Int32s,
    Rows,
    all_in_row,
    any_in_row,
    contains,
    equal_lists,
    lengths,
    stack_padded,
    unpad,
)
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.reassignment import complete_reassignments
from state.partitions.slot import Slot
from state.payloads.partitions import AlterPartitionRequested
from state.protocol_errors import ProtocolError
from state.reply_bodies import IsrAnswer

_INELIGIBLE_REPLICA_SINCE = 2
_UNKNOWN_ERRORS_BREAK_LEADERS_BELOW = 1
_UNKNOWN_TO_OLD_LEADERS = (ProtocolError.OPERATION_NOT_ATTEMPTED, ProtocolError.INVALID_REQUEST)


Asked = Sequence[tuple[Event, AlterPartitionRequested]]


@dataclass(frozen=True, slots=True)
class _AskedRows:
    """What leaders ask for, one row a partition: the fields of requests, with those of the request
    as a whole repeated, and the row of the table (-1: there is none).

    isr int32[k, R] padded with -1, the others int32[k].
    """

    at: Rows
    broker: Int32s
    version: Int32s
    leader_epoch: Int32s
    partition_epoch: Int32s
    recovery: Int32s
    isr: Int32s


def on_alter_partition_requested(
    slot: Slot, event: Event, request: AlterPartitionRequested
) -> list[Decision]:
    """Accept or reject new ISRs for partitions of one topic and answer the leader.

    Source: KafkaController.tryProcessAlterPartition. An accepted ISR keeps its leader epoch and
    needs no LeaderAndIsr. A request of version 0 (brokers of 2.8) never gets an error that such
    brokers cannot handle: it gets INVALID_UPDATE_VERSION, and the leader epoch is bumped so that
    the leader starts afresh.
    """
    return alter_partitions(slot, [(event, request)])


def is_of_a_living_topic(slot: Slot, request: AlterPartitionRequested) -> bool:
    """Return whether a request can be decided together with others: a deletion that goes on by it
    may take the rows of its topic away.
    """
    return request.topic not in slot.table.deletions


def alter_partitions(slot: Slot, asked: Asked) -> list[Decision]:
    """Decide requests about different topics, as `on_alter_partition_requested` does; more than one
    only if each `is_of_a_living_topic`.
    """
    tops = [_request_error(slot, request) for _, request in asked]
    found = [
        alter_partition_reply(event, request, top, [])
        for (event, request), top in zip(asked, tops, strict=True)
        if top is not None
    ]
    good = [one for one, top in zip(asked, tops, strict=True) if top is None]
    if not good:
        return found
    changes = Changes.about_topics(
        slot.table, {request.topic: event.offset for event, request in good}
    )
    at, errors = _alter(slot, changes, [request for _, request in good])
    found += deletion.finish_with_deletions(slot, changes)
    ends = np.cumsum([len(request.partitions) for _, request in good])[:-1]
    for (event, request), rows, of_rows in zip(
        good, np.split(at, ends), np.split(errors, ends), strict=True
    ):
        found.append(_answered(slot, event, request, rows, of_rows))
    return found


def _alter(
    slot: Slot, changes: Changes, requests: Sequence[AlterPartitionRequested]
) -> tuple[Rows, Int32s]:
    """Take the ISRs that can be taken; return rows and errors of all partitions asked about."""
    asked = _asked(slot, requests)
    errors = _errors(slot, asked)
    _accept(slot, changes, asked, (errors == ProtocolError.NONE) & ~_already_so(slot, asked))
    complete_reassignments(slot, changes, asked.at[errors == ProtocolError.NONE])
    return asked.at, _answer_by_version(slot, changes, asked, errors)


def _asked(slot: Slot, requests: Sequence[AlterPartitionRequested]) -> _AskedRows:
    counts = [len(one.partitions) for one in requests]
    return _AskedRows(
        at=np.concatenate([slot.table.find(one.topic, one.partitions) for one in requests]),
        broker=np.repeat(np.array([one.broker_id for one in requests], dtype=np.int32), counts),
        version=np.repeat(np.array([one.version for one in requests], dtype=np.int32), counts),
        leader_epoch=np.concatenate([one.leader_epoch for one in requests]),
        partition_epoch=np.concatenate([one.partition_epoch for one in requests]),
        recovery=np.concatenate([one.recovery for one in requests]),
        isr=stack_padded([one.isr for one in requests], NONE),
    )


def _request_error(slot: Slot, request: AlterPartitionRequested) -> ProtocolError | None:
    error = alter_partition_sender_error(slot.authority, slot.brokers, request)
    if error is None and not set(request.recovery.tolist()) <= {0, 1}:
        return ProtocolError.UNKNOWN_SERVER_ERROR
    return error


def _already_so(slot: Slot, asked: _AskedRows) -> Bools:
    rows, at = slot.table.rows, asked.at
    if len(rows) == 0:
        return np.zeros(len(at), dtype=bool)
    same: Bools = (
        (at >= 0)
        & (rows.leader[at] == asked.broker)
        & (rows.leader_epoch[at] == asked.leader_epoch)
        & (rows.recovery[at] == asked.recovery)
        & equal_lists(rows.isr[at], asked.isr)
        & (asked.partition_epoch <= rows.zk_version[at])
    )
    return same


def _errors(slot: Slot, asked: _AskedRows) -> Int32s:
    """Return int32[k] protocol errors; the first condition that holds wins."""
    rows, at = slot.table.rows, asked.at
    if len(rows) == 0:
        return np.full(len(at), ProtocolError.UNKNOWN_TOPIC_OR_PARTITION, dtype=np.int32)
    known = (at >= 0) & rows.has_state[at]
    newer = (asked.partition_epoch > rows.zk_version[at]) | (
        asked.leader_epoch > rows.leader_epoch[at]
    )
    recovering = asked.recovery == 1
    online = all_in_row(slot.online(at, asked.isr) | (asked.isr == NONE))
    knows_ineligible = asked.version >= _INELIGIBLE_REPLICA_SINCE
    conditions = [
        (~known, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION),
        (newer, ProtocolError.NOT_CONTROLLER),
        (asked.leader_epoch < rows.leader_epoch[at], ProtocolError.FENCED_LEADER_EPOCH),
        (_already_so(slot, asked), ProtocolError.NONE),
        (asked.partition_epoch < rows.zk_version[at], ProtocolError.INVALID_UPDATE_VERSION),
        (recovering & (lengths(asked.isr) > 1), ProtocolError.INVALID_REQUEST),
        (recovering & (rows.recovery[at] == 0), ProtocolError.INVALID_REQUEST),
        (rows.leader[at] != asked.broker, ProtocolError.INVALID_REQUEST),
        (_impossible(slot, asked), ProtocolError.INVALID_REQUEST),
        (~online & knows_ineligible, ProtocolError.INELIGIBLE_REPLICA),
        (~online, ProtocolError.OPERATION_NOT_ATTEMPTED),
    ]
    return np.select(
        [condition for condition, _ in conditions],
        [np.int32(error) for _, error in conditions],
        default=np.int32(ProtocolError.NONE),
    ).astype(np.int32)


def _impossible(slot: Slot, asked: _AskedRows) -> Bools:
    """Return bool[k]: no leader could mean this ISR: it lacks itself, or has a stranger in it."""
    rows = slot.table.rows
    assigned = contains(rows.replicas[asked.at], asked.isr) | (asked.isr == NONE)
    itself = contains(asked.isr, asked.broker[:, None])[:, 0]
    impossible: Bools = ~itself | ~all_in_row(assigned)
    return impossible


def _accept(slot: Slot, changes: Changes, asked: _AskedRows, accepted: Bools) -> None:
    rows = slot.table.rows
    taken = asked.at[accepted]
    rows.recovery[taken] = asked.recovery[accepted]
    slot.table.replace_isr(taken, asked.isr[accepted])
    changes.mark_written(taken, Rule.ISR_ALTERED_BY_LEADER, bump=False)


def _answer_by_version(slot: Slot, changes: Changes, asked: _AskedRows, errors: Int32s) -> Int32s:
    """Return int32[k] errors as leaders are told them. Where brokers of 2.8 would never recover
    from the error, and where the leader was told of other replicas, the leader epoch is raised.
    """
    told = errors_for_version(errors, asked.version)
    waiting = (told != errors) | _told_otherwise(slot, asked, errors)
    if not waiting.any():
        return errors
    rows = asked.at[waiting]
    changes.raise_leader_epoch(rows, slot.registered_replicas(rows))
    return told


def _told_otherwise(slot: Slot, asked: _AskedRows, errors: Int32s) -> Bools:
    """Return bool[k]: a leader that is listed was refused an ISR with a broker that is not.

    Another controller told it so. It waits for the replicas as they are, and ignores them until
    they come with a higher leader epoch (ReplicaManager.becomeLeaderOrFollower). One that is not
    listed is told nothing, and its followers fetch from it under the epoch it has.
    """
    otherwise: Bools = errors == ProtocolError.INVALID_REQUEST
    if not otherwise.any():
        return otherwise
    at, rows = asked.at[otherwise], slot.table.rows
    isr, leader = asked.isr[otherwise], rows.leader[at][:, None]
    unlisted = (isr != NONE) & ~contains(rows.replicas[at], isr)
    leads = contains(rows.replicas[at], leader)[:, 0] & (leader[:, 0] == asked.broker[otherwise])
    otherwise[otherwise] = leads & any_in_row(unlisted)
    return otherwise


def errors_for_version(errors: Int32s, version: Int32s | int) -> Int32s:
    """Return partitions' errors as leaders that asked in a version of AlterPartition are told them:
    INVALID_UPDATE_VERSION in place of those that they would never recover from.

    errors: int32[n]. version: of each, or of all.
    """
    unknown = np.isin(errors, _UNKNOWN_TO_OLD_LEADERS)
    unknown &= np.less(version, _UNKNOWN_ERRORS_BREAK_LEADERS_BELOW)
    return np.where(unknown, np.int32(ProtocolError.INVALID_UPDATE_VERSION), errors)


def _answered(
    slot: Slot, event: Event, request: AlterPartitionRequested, at: Rows, errors: Int32s
) -> Decision:
    partitions = [
        _answer(slot, row, partition, error)
        for row, partition, error in zip(
            at.tolist(), request.partitions.tolist(), errors.tolist(), strict=True
        )
    ]
    return alter_partition_reply(event, request, ProtocolError.NONE, partitions)


def _answer(slot: Slot, row: int, partition: int, error: int) -> IsrAnswer:
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
