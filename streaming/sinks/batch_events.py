"""What came of decisions, as events for the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.payloads.partitions import StateCause
from state.payloads.topics import topic_removed
from streaming.log.api import LogRecord, NewRecord
from streaming.log.events import event
from streaming.observers.producer_ids import producer_ids_observed
from streaming.observers.states import state_tuples
from streaming.sinks import reports
from streaming.sinks.batch import DecidedBatch, LostWrite, SinkDecision
from streaming.zk.znodes.partition_state import parse_partition_states

logger = logging.getLogger(__name__)
_offset = attrgetter("offset")


def lost_partition_events(lost_writes: Iterable[LostWrite]) -> list[NewRecord]:
    """Return one partition_states_observed per topic and cause with what the znodes hold that were
    not written; topics of one name that have ids are apart.
    """

    def place(one: LostWrite) -> tuple[str, StateCause, str]:
        cause = StateCause.REJECTED if one.rejected else StateCause.CONFLICT
        return str(one.topic), cause, one.topic_id or ""

    of_partitions = [one for one in lost_writes if None not in (one.topic, one.partition)]
    of_partitions.sort(key=lambda one: (*place(one), one.partition or 0))
    return [
        _states_observed(*named, list(of_topic))
        for named, of_topic in groupby(of_partitions, key=place)
    ]


def _states_observed(
    topic: str, cause: StateCause, topic_id: str, of_topic: list[LostWrite]
) -> NewRecord:
    lost_writes = {one.partition: one for one in of_topic}
    znodes = [one.current for one in lost_writes.values()]
    states = parse_partition_states(
        [None if znode is None else znode.data for znode in znodes],
        [-1 if znode is None else znode.version for znode in znodes],
    )
    for row, error in states.errors.items():
        logger.error("partition %s-%s: %s", topic, list(lost_writes)[row], error)
    payload: dict[str, Any] = {
        "topic": topic,
        "cause": cause,
        "partitions": list(lost_writes),
        "states": state_tuples(states),
    }
    if cause is StateCause.REJECTED:
        first = {one.partition: one.offset for one in sorted(of_topic, key=_offset, reverse=True)}
        payload["since"] = [first[partition] for partition in lost_writes]
    if topic_id:
        payload["topic_id"] = topic_id
    missing = (one for one in lost_writes.values() if one.creates and one.current is None)
    if uncreated := [one.partition for one in missing]:
        payload["uncreated"] = uncreated
    return event(EventKind.PARTITION_STATES_OBSERVED, payload, topic)


def topic_removals(batch: DecidedBatch) -> list[NewRecord]:
    """Return topic_removed for topics that could not be written: the machine forgets what it made
    of them before it hears how they are.
    """
    return [
        event(EventKind.TOPIC_REMOVED, _removal(one), one.topic) for one in batch.refused_topics()
    ]


def _removal(refused: SinkDecision) -> dict[str, Any]:
    body = {"topic": refused.topic, "observed_again": True, "since": refused.offset}
    is_mark = refused.kind is DecisionKind.MARK_TOPIC_DELETION
    return {**body, "unmarked": True} if is_mark else body


def taken_back(events: Iterable[NewRecord | LogRecord]) -> list[str]:
    """Return the topics of which events say that what they hold follows; those of the observers
    are about topics that are gone.
    """
    removals = (one for one in events if one.kind == EventKind.TOPIC_REMOVED)
    return [one.key for one in removals if topic_removed(orjson.loads(one.payload)).observed_again]


def refused_since(event: NewRecord | LogRecord) -> int | None:
    """Return the event whose write was refused, by which a topic was taken back; None where an
    event says none.
    """
    if event.kind != EventKind.TOPIC_REMOVED:
        return None
    since: int | None = orjson.loads(event.payload).get("since")
    return since


def rejected_since(event: LogRecord) -> tuple[str | None, dict[int, int]]:
    """Return the topic id, and for each partition of which writes were rejected the first event
    whose write that was, where an event says so. What was decided before was written, or met other
    content then; after a conflict that is not known, since the znode may have been made anew.
    """
    if event.kind != EventKind.PARTITION_STATES_OBSERVED:
        return None, {}
    body = orjson.loads(event.payload)
    first = zip(body["partitions"], body.get("since", []), strict=False)
    return body.get("topic_id"), dict(first)


def producer_id_events(lost_writes: Iterable[LostWrite]) -> list[NewRecord]:
    """Return producer_id_block_observed when block writes met another block, or were rejected."""
    of_blocks = [one for one in lost_writes if one.tells_producer_ids]
    return [producer_ids_observed(one.current) for one in of_blocks[-1:]]


def imbalance_events(batch: DecidedBatch) -> list[NewRecord]:
    """Return the summed leader imbalance of every report in the batch, for all slots to act on."""
    proposed = {one.offset: one for one in batch.of_kind(DecisionKind.PROPOSE_ELECTIONS)}
    return [
        event(
            EventKind.LEADER_IMBALANCE_REPORTED,
            reports.imbalance(report, proposed.get(report.offset)),
        )
        for report in batch.of_kind(DecisionKind.REPORT_IMBALANCE)
    ]


def checked_shutdowns(batch: DecidedBatch) -> list[NewRecord]:
    """Return what the slots found about shutdowns that are to be checked."""
    at_risk = {one.offset: one for one in batch.of_kind(DecisionKind.REPORT_AT_RISK)}
    return [
        event(
            EventKind.CONTROLLED_SHUTDOWN_CHECKED,
            reports.checked_shutdown(asked.content, at_risk.get(asked.offset)),
        )
        for asked in batch.of_kind(DecisionKind.CHECK_SHUTDOWN)
    ]


_FOLLOWING: Mapping[EventKind, Callable[[DecidedBatch], list[NewRecord]]] = {
    EventKind.PARTITION_STATES_OBSERVED: lambda batch: lost_partition_events(batch.lost_writes),
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: lambda batch: producer_id_events(batch.lost_writes),
    EventKind.LEADER_IMBALANCE_REPORTED: imbalance_events,
    EventKind.CONTROLLED_SHUTDOWN_CHECKED: checked_shutdowns,
    EventKind.TOPIC_REMOVED: topic_removals,
}
FOLLOWING_KINDS = frozenset(_FOLLOWING)
"""Kinds of the events that a batch may lead to."""


def batch_events(batch: DecidedBatch) -> list[NewRecord]:
    """Return the events that follow from a batch after it was written."""
    return [found for follow in _FOLLOWING.values() for found in follow(batch)]
