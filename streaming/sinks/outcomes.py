"""What came of decisions, as events for the log and as replies for those who asked."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import groupby
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from state.decisions import DecisionKind
from state.events import EventKind
from state.partitions.states import CONFLICT, REJECTED
from state.protocol_errors import ProtocolError
from state.replies import Api
from streaming.log.api import NewRecord
from streaming.observers.ports import event
from streaming.observers.producer_ids import NO_BLOCK, producer_id_block
from streaming.observers.states import state_tuples
from streaming.sinks import reports
from streaming.sinks.batch import DecidedBatch, SinkDecision, WriteConflict
from streaming.sinks.doubts import Doubts
from streaming.zk.znodes.partition_state import parse_partition_states

logger = logging.getLogger(__name__)

OUTCOME_KINDS = frozenset(
    {
        EventKind.PARTITION_STATES_OBSERVED,
        EventKind.PRODUCER_ID_BLOCK_OBSERVED,
        EventKind.LEADER_IMBALANCE_REPORTED,
        EventKind.CONTROLLED_SHUTDOWN_CHECKED,
        EventKind.TOPIC_REMOVED,
    }
)
"""Kinds of the events that a batch may lead to."""


def partition_conflict_events(conflicts: Iterable[WriteConflict]) -> list[NewRecord]:
    """Return one partition_states_observed per topic and cause with what the znodes hold that were
    not written.
    """

    def place(one: WriteConflict) -> tuple[str, str]:
        return str(one.topic), REJECTED if one.rejected else CONFLICT

    of_partitions = [one for one in conflicts if None not in (one.topic, one.partition)]
    of_partitions.sort(key=lambda one: (*place(one), one.partition or 0))
    return [
        _states_observed(*named, {one.partition: one for one in of_topic})
        for named, of_topic in groupby(of_partitions, key=place)
    ]


def _states_observed(
    topic: str, cause: str, conflicts: dict[int | None, WriteConflict]
) -> NewRecord:
    znodes = [conflict.current for conflict in conflicts.values()]
    states = parse_partition_states(
        [None if znode is None else znode.data for znode in znodes],
        [-1 if znode is None else znode.version for znode in znodes],
    )
    for row, error in states.errors.items():
        logger.error("partition %s-%s: %s", topic, list(conflicts)[row], error)
    payload: dict[str, Any] = {
        "topic": topic,
        "cause": cause,
        "partitions": list(conflicts),
        "states": state_tuples(states),
    }
    missing = (one for one in conflicts.values() if one.creates and one.current is None)
    if uncreated := [one.partition for one in missing]:
        payload["uncreated"] = uncreated
    return event(EventKind.PARTITION_STATES_OBSERVED, payload, topic)


def batch_events(batch: DecidedBatch) -> list[NewRecord]:
    """Return the events that follow from a batch after it was written."""
    return [
        *partition_conflict_events(batch.conflicts),
        *producer_id_events(batch.conflicts),
        *imbalance_events(batch),
        *checked_shutdowns(batch),
        *topic_removals(batch),
    ]


def topic_removals(batch: DecidedBatch) -> list[NewRecord]:
    """Return topic_removed for topics that could not be written: the machine forgets what it made
    of them before it hears how they are.
    """
    return [
        event(EventKind.TOPIC_REMOVED, _removal(one), one.extra["topic"])
        for one in batch.refused_topics()
    ]


def _removal(refused: SinkDecision) -> dict[str, Any]:
    body = {"topic": refused.extra["topic"], "observed_again": True}
    is_mark = refused.kind is DecisionKind.MARK_TOPIC_DELETION
    return {**body, "unmarked": True} if is_mark else body


def producer_id_events(conflicts: Iterable[WriteConflict]) -> list[NewRecord]:
    """Return producer_id_block_observed when block writes met another block."""
    of_blocks = [one for one in conflicts if one.tells_producer_ids]
    if not of_blocks:
        return []
    try:
        block = producer_id_block(of_blocks[-1].current)
    except ValueError as error:
        logger.error("no producer ids can be allocated: %s", error)
        block = NO_BLOCK
    payload = {name: block[name] for name in ("block_end", "zk_version")}
    return [event(EventKind.PRODUCER_ID_BLOCK_OBSERVED, payload)]


def imbalance_events(batch: DecidedBatch) -> list[NewRecord]:
    """Return the summed leader imbalance of every report in the batch, for all slots to act on."""
    proposed = {one.offset: one for one in batch.of_kind(DecisionKind.PROPOSE_ELECTIONS)}
    return [
        event(
            EventKind.LEADER_IMBALANCE_REPORTED,
            reports.imbalance(_block(report), _block(proposed.get(report.offset))),
        )
        for report in batch.of_kind(DecisionKind.REPORT_IMBALANCE)
    ]


def checked_shutdowns(batch: DecidedBatch) -> list[NewRecord]:
    """Return what the slots found about shutdowns that are to be checked."""
    at_risk = {one.offset: one for one in batch.of_kind(DecisionKind.REPORT_AT_RISK)}
    return [
        event(
            EventKind.CONTROLLED_SHUTDOWN_CHECKED,
            reports.checked_shutdown(asked.extra, _block(at_risk.get(asked.offset))),
        )
        for asked in batch.of_kind(DecisionKind.CHECK_SHUTDOWN)
    ]


@overload
def _block(decision: SinkDecision) -> reports.Block: ...
@overload
def _block(decision: None) -> None: ...
def _block(decision: SinkDecision | None) -> reports.Block | None:
    return None if decision is None else (decision.columns, decision.extra)


def replies(batch: DecidedBatch, doubts: Doubts) -> list[dict[str, Any]]:
    """Return the replies of a batch, corrected by what could not be written."""
    failed = {one.offset for one in batch.decisions if one.failed}
    rejected = {(one.offset, one.topic, one.partition): one.rejected for one in batch.rejected}
    unmoved = _partitions(batch.of_kind(DecisionKind.REPORT_REMAINING))
    lost = _lost_partitions(batch, only_moves=False)
    for offset, moves in _lost_partitions(batch, only_moves=True).items():
        unmoved.setdefault(offset, []).extend(moves)
    answers = []
    for reply in batch.of_kind(DecisionKind.REPLY):
        body = dict(reply.extra)
        if reply.offset < batch.fenced_until:
            body["error"] = int(ProtocolError.NOT_CONTROLLER)
        elif body["api"] == Api.CONTROLLED_SHUTDOWN:
            body["remaining"] = sorted(unmoved.get(reply.offset, []))
        elif body["api"] == Api.ALTER_PARTITION:
            _refuse_lost(body, reply.offset, lost.get(reply.offset, []), doubts)
        elif body["api"] == Api.ELECT_LEADERS:
            _refuse_lost_elections(body, reply.offset, lost.get(reply.offset, []), rejected)
        elif reply.offset in failed:
            _refuse_failed(body, rejected.get((reply.offset, body.get("topic"), None)))
        answers.append(body)
    return answers


def _partitions(blocks: Iterable[SinkDecision]) -> dict[int, list[list[Any]]]:
    """Return [topic, partition] of all rows, by event offset."""
    return {one.offset: _named(one, np.ones(len(one.lost), dtype=bool)) for one in blocks}


def _lost_partitions(batch: DecidedBatch, *, only_moves: bool) -> dict[int, list[list[Any]]]:
    """Return [topic, partition] of lost rows by event offset, all or those with a new leader."""
    found = {}
    for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS):
        rows = one.lost
        if only_moves:
            rows = rows & (one.columns["leader"] != one.columns["leader_before"])
        if rows.any():
            found[one.offset] = _named(one, rows)
    return found


def lost_rows(batch: DecidedBatch) -> list[list[Any]]:
    """Return [event offset, topic, partition] of the changes that were not written, other than
    those before `batch.fenced_until`.
    """
    return [
        [offset, *named]
        for offset, lost in _lost_partitions(batch, only_moves=False).items()
        if offset >= batch.fenced_until
        for named in lost
    ]


def rejections(batch: DecidedBatch) -> list[list[Any]]:
    """Return [event offset, topic, partition, reason] of the writes that ZooKeeper rejected; topic
    or partition are null where they are about no single one.
    """
    return [[one.offset, one.topic, one.partition, one.rejected] for one in batch.rejected]


def _named(decision: SinkDecision, rows: npt.NDArray[np.bool_]) -> list[list[Any]]:
    columns = {name: decision.columns[name][rows] for name in ("topic", "partition")}
    return reports.places((columns, decision.extra))


def _refuse_lost(body: dict[str, Any], offset: int, lost: list[list[Any]], doubts: Doubts) -> None:
    """Answer INVALID_UPDATE_VERSION for ISRs that were not written, or rest on such: the leader
    then waits for the higher epoch that the correction brings. None comes after a rejected write:
    OPERATION_NOT_ATTEMPTED lets the leader go on from what is stored, and ask again.
    """
    topic = body["topic"]

    def answer(one: dict[str, Any]) -> dict[str, Any]:
        partition = one["partition"]
        if [topic, partition] not in lost and not doubts.cover(topic, partition, offset):
            return one
        again = doubts.by_rejection(topic, partition)
        error = ProtocolError.INVALID_UPDATE_VERSION
        error = ProtocolError.OPERATION_NOT_ATTEMPTED if again else error
        return {"partition": partition, "error": int(error)}

    body["partitions"] = [answer(one) for one in body["partitions"]]


Rejections = dict[tuple[int, str | None, int | None], str]
"""Why ZooKeeper rejected a write, by event offset, topic and partition."""


def _refuse_lost_elections(
    body: dict[str, Any], offset: int, lost: list[list[Any]], rejected: Rejections
) -> None:
    """Answer for elections whose outcome was not written: they are decided about again, or cannot
    be written.
    """

    def answer(one: dict[str, Any]) -> dict[str, Any]:
        if [body["topic"], one["partition"]] not in lost:
            return one
        hopeless = (offset, body["topic"], one["partition"]) in rejected
        error = ProtocolError.PREFERRED_LEADER_NOT_AVAILABLE
        error = ProtocolError.UNKNOWN_SERVER_ERROR if hopeless else error
        return {**one, "error": int(error)}

    body["partitions"] = [answer(one) for one in body["partitions"]]


def _refuse_failed(body: dict[str, Any], rejected: str | None) -> None:
    """Answer what was not written; rejected: why ZooKeeper will not take it, None where it was
    changed by somebody else.
    """
    if rejected is not None:
        body["error"] = int(ProtocolError.UNKNOWN_SERVER_ERROR)
        body["message"] = f"ZooKeeper rejects it: {rejected}"
    elif body["api"] == Api.CREATE_TOPIC:
        body["error"] = int(ProtocolError.TOPIC_ALREADY_EXISTS)
        body["message"] = f"Topic '{body['topic']}' already exists."
    elif body["api"] == Api.ALTER_REASSIGNMENTS:
        body["error"] = int(ProtocolError.NOT_CONTROLLER)
    elif body["api"] == Api.CREATE_PARTITIONS:
        body["error"] = int(ProtocolError.REASSIGNMENT_IN_PROGRESS)
        body["message"] = f"Somebody else changed topic '{body['topic']}' meanwhile."
    else:
        body["error"] = int(ProtocolError.UNKNOWN_SERVER_ERROR)
