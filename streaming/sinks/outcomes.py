"""What came of decisions, as events for the log and as replies for those who asked."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.events import EventKind
from state.protocol_errors import ProtocolError
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import NewRecord
from streaming.observers.states import state_tuples
from streaming.sinks.batch import DecidedBatch, SinkDecision, WriteConflict
from streaming.sinks.channel import Answer
from streaming.wire.messages import ApiKey
from streaming.zk.znodes.controller import parse_producer_id_block
from streaming.zk.znodes.partition_state import parse_partition_states


def event_record(kind: EventKind, key: str, payload: dict[str, Any]) -> NewRecord:
    """Return an event to append."""
    return NewRecord(kind, key, orjson.dumps(payload, option=orjson.OPT_NON_STR_KEYS))


def partition_conflict_events(conflicts: Iterable[WriteConflict]) -> list[NewRecord]:
    """Return one partition_states_observed per topic with what its conflicting znodes hold."""
    of_partitions = [one for one in conflicts if None not in (one.topic, one.partition)]
    of_partitions.sort(key=lambda one: (str(one.topic), one.partition or 0))
    return [
        _states_observed(str(topic), {one.partition: one for one in of_topic})
        for topic, of_topic in groupby(of_partitions, key=lambda one: one.topic)
    ]


def _states_observed(topic: str, conflicts: dict[int | None, WriteConflict]) -> NewRecord:
    znodes = [conflict.current for conflict in conflicts.values()]
    states = parse_partition_states(
        [None if znode is None else znode.data for znode in znodes],
        [-1 if znode is None else znode.version for znode in znodes],
    )
    payload = {
        "topic": topic,
        "cause": "conflict",
        "partitions": list(conflicts),
        "states": state_tuples(states),
    }
    return event_record(EventKind.PARTITION_STATES_OBSERVED, topic, payload)


def failed_creations(batch: DecidedBatch) -> list[str]:
    """Return the topics whose creation met a topic of that name, which ZooKeeper knows better."""
    created = batch.of_kind(DecisionKind.CREATE_TOPIC)
    return [one.extra["topic"] for one in created if one.failed]


def producer_id_events(conflicts: Iterable[WriteConflict]) -> list[NewRecord]:
    """Return producer_id_block_observed for a block write that met another block."""
    events = []
    for conflict in conflicts:
        if conflict.kind is DecisionKind.WRITE_PRODUCER_ID_BLOCK:
            current = conflict.current
            block_end = parse_producer_id_block(current.data).block_end if current else -1
            version = current.version if current else -1
            payload = {"block_end": block_end, "zk_version": version}
            events.append(event_record(EventKind.PRODUCER_ID_BLOCK_OBSERVED, "", payload))
    return events


def imbalance_events(batch: DecidedBatch) -> list[NewRecord]:
    """Return the summed leader imbalance of every report in the batch, for all slots to act on."""
    return [
        event_record(
            EventKind.LEADER_IMBALANCE_REPORTED,
            "",
            {
                name: dict(
                    zip(
                        map(str, report.columns["broker"].tolist()),
                        report.columns[name].tolist(),
                        strict=True,
                    )
                )
                for name in ("preferred", "imbalanced")
            },
        )
        for report in batch.of_kind(DecisionKind.REPORT_IMBALANCE)
    ]


def answer_events(answer: Answer, image: ClusterImage) -> list[NewRecord]:
    """Return leader_and_isr_answered for the topics whose replicas failed, or were known as failed.

    An answer without a storage error says nothing new about a replica that was healthy before.
    """
    if answer.request.api is not ApiKey.LEADER_AND_ISR or answer.body["error_code"]:
        return []
    events = []
    for topic, partitions in _errors_by_topic(answer, image).items():
        failed = ProtocolError.KAFKA_STORAGE_ERROR in partitions.values()
        if failed or _any_offline(image, topic, answer.broker_id):
            payload = {
                "broker_id": answer.broker_id,
                "broker_epoch": answer.broker_epoch,
                "topic": topic,
                "partitions": list(partitions),
                "errors": list(partitions.values()),
            }
            events.append(event_record(EventKind.LEADER_AND_ISR_ANSWERED, topic, payload))
    return events


def _errors_by_topic(answer: Answer, image: ClusterImage) -> dict[str, dict[int, int]]:
    """Return error codes by topic and partition, from the flat list or the one by topic id."""
    found: dict[str, dict[int, int]] = {}
    for entry in answer.body["partition_errors"] or ():
        found.setdefault(entry["topic_name"], {})[entry["partition_index"]] = entry["error_code"]
    rows = answer.request.rows
    names = {bytes(rows.topic_ids[at]): name for at, name in enumerate(rows.topic_names)}
    for topic in answer.body["topics"] or ():
        name = names.get(topic["topic_id"].bytes if topic["topic_id"] else bytes(16))
        if name is not None:
            for entry in topic["partition_errors"]:
                found.setdefault(name, {})[entry["partition_index"]] = entry["error_code"]
    return found


def _any_offline(image: ClusterImage, topic: str, broker_id: int) -> bool:
    rows = image.rows_of(topic)
    if rows.start == rows.stop:
        return False
    hosted = image.columns["replicas"][rows] == broker_id
    return bool((hosted & image.columns["offline"][rows]).any())


def replies(batch: DecidedBatch) -> list[dict[str, Any]]:
    """Return the replies of a batch, corrected by what could not be written."""
    remaining = {
        one.offset: [
            [one.extra["topics"][topic], partition]
            for topic, partition in zip(
                one.columns["topic"].tolist(), one.columns["partition"].tolist(), strict=True
            )
        ]
        for one in batch.of_kind(DecisionKind.REPORT_REMAINING)
    }
    lost = _lost_partitions(batch)
    failed = {one.offset for one in batch.decisions if one.failed}
    return [
        _corrected(reply, remaining.get(reply.offset, []), lost, reply.offset in failed)
        for reply in batch.of_kind(DecisionKind.REPLY)
    ]


def _lost_partitions(batch: DecidedBatch) -> set[tuple[int, str, int]]:
    return {
        (one.offset, one.extra["topics"][topic], partition)
        for one in batch.of_kind(DecisionKind.CHANGE_PARTITIONS)
        if one.lost.any()
        for topic, partition in zip(
            one.columns["topic"][one.lost].tolist(),
            one.columns["partition"][one.lost].tolist(),
            strict=True,
        )
    }


def _corrected(
    reply: SinkDecision, remaining: list[list[Any]], lost: set[tuple[int, str, int]], failed: bool
) -> dict[str, Any]:
    body = dict(reply.extra)
    match body["api"]:
        case "controlled_shutdown":
            body["remaining"] = remaining
        case "alter_partition":
            body["partitions"] = [
                {"partition": one["partition"], "error": int(ProtocolError.INVALID_UPDATE_VERSION)}
                if (reply.offset, body["topic"], one["partition"]) in lost
                else one
                for one in body["partitions"]
            ]
        case "create_topic" if failed:
            body["error"] = int(ProtocolError.TOPIC_ALREADY_EXISTS)
            body["message"] = f"Topic '{body['topic']}' already exists."
        case "producer_ids" if failed:
            body["error"] = int(ProtocolError.UNKNOWN_SERVER_ERROR)
    return body
