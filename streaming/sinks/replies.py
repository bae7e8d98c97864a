"""Replies to those who asked for what a batch decided, corrected by what could not be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state.decisions import DecisionKind
from state.partitions.refusals import RefusalReason
from state.payloads.admin import NOT_ELECTED, ElectionType
from state.protocol_errors import ProtocolError
from state.reply_bodies import (
    AlterPartitionReply,
    ControllerApi,
    IsrAnswer,
    PartitionError,
    PartitionsReply,
)
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.doubts import Doubts
from streaming.sinks.reports import places
from streaming.sinks.write_failures import lost_partitions

_ABOUT_TOPICS = frozenset(
    {
        ControllerApi.CREATE_TOPIC,
        ControllerApi.DELETE_TOPIC,
        ControllerApi.CREATE_PARTITIONS,
        ControllerApi.ALTER_REASSIGNMENTS,
    }
)
"""Requests that write a topic's znode or its mark for deletion, or find it written already."""

Rejections = dict[tuple[int, str | None, int | None], str]
"""Why ZooKeeper rejected a write, by event offset, topic and partition."""


def replies(
    batch: DecidedBatch, doubts: Doubts, topic_ids: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return the replies of a batch, corrected by what could not be written.

    topic_ids: of the topics there are once it is carried out, for requests that name none.
    """
    failed = {one.offset for one in batch.decisions if one.failed}
    refused = {one.offset for one in batch.lost_writes if one.partition is None}
    rejected = {(one.offset, one.topic, one.partition): one.rejected for one in batch.rejected}
    unmoved = {one.offset: places(one) for one in batch.of_kind(DecisionKind.REPORT_REMAINING)}
    lost = lost_partitions(batch, only_moves=False)
    for offset, moves in lost_partitions(batch, only_moves=True).items():
        unmoved.setdefault(offset, []).extend(moves)
    answers = []
    for reply in batch.of_kind(DecisionKind.REPLY):
        body = reply.content.copy()
        if reply.offset < batch.fenced_until:
            body["error"] = int(ProtocolError.NOT_CONTROLLER)
        elif body["api"] == ControllerApi.CONTROLLED_SHUTDOWN:
            body["remaining"] = sorted(unmoved.get(reply.offset, []))
            body["refused"] = _was_unsafe(batch, reply.offset)
        elif body["api"] == ControllerApi.ALTER_PARTITION:
            _refuse_lost(body, reply.offset, lost.get(reply.offset, []), doubts, topic_ids)
        elif body["api"] == ControllerApi.ELECT_LEADERS:
            _refuse_lost_elections(body, reply.offset, lost.get(reply.offset, []), rejected)
        elif reply.offset not in refused and _rests_on_doubt(body, doubts, reply.offset):
            _have_asked_again(body)
        elif reply.offset in failed:
            _refuse_failed(body, rejected.get((reply.offset, body.get("topic"), None)))
        answers.append(body)
    return answers


def _was_unsafe(batch: DecidedBatch, offset: int) -> bool:
    """Return whether the safety check kept a broker that asked by an event."""
    return any(
        one.offset == offset and RefusalReason.BELOW_MIN_INSYNC in one.content["reasons"]
        for one in batch.of_kind(DecisionKind.REFUSE_TRANSITION)
    )


def _refuse_lost(
    body: AlterPartitionReply,
    offset: int,
    lost: list[list[Any]],
    doubts: Doubts,
    topic_ids: Mapping[str, str | None],
) -> None:
    """Answer INVALID_UPDATE_VERSION for ISRs that were not written, or rest on such: the leader
    then waits for the higher epoch that the correction brings. None comes after a rejected write:
    OPERATION_NOT_ATTEMPTED lets the leader go on from what is stored, and ask again.
    """
    topic = body["topic"]
    topic_id = body["topic_id"] or topic_ids.get(topic)

    def answer(one: IsrAnswer) -> IsrAnswer:
        partition = one["partition"]
        if [topic, partition] not in lost and not doubts.cover(topic, partition, offset, topic_id):
            return one
        again = doubts.by_rejection(topic, partition)
        error = ProtocolError.INVALID_UPDATE_VERSION
        error = ProtocolError.OPERATION_NOT_ATTEMPTED if again else error
        return {"partition": partition, "error": int(error)}

    body["partitions"] = [answer(one) for one in body["partitions"]]


def _refuse_lost_elections(
    body: PartitionsReply, offset: int, lost: list[list[Any]], rejected: Rejections
) -> None:
    """Answer for elections whose outcome was not written: they are decided about again, or cannot
    be written. A reply does not say of which type they were: all get the error of a preferred one,
    which the gateway replaces by that of the type.
    """

    def answer(one: PartitionError) -> PartitionError:
        if [body["topic"], one["partition"]] not in lost:
            return one
        hopeless = (offset, body["topic"], one["partition"]) in rejected
        error = NOT_ELECTED[ElectionType.PREFERRED]
        error = ProtocolError.UNKNOWN_SERVER_ERROR if hopeless else error
        return {**one, "error": int(error)}

    body["partitions"] = [answer(one) for one in body["partitions"]]


def _rests_on_doubt(body: Mapping[str, Any], doubts: Doubts, offset: int) -> bool:
    """Return whether a request was decided on what another one had made of its topic, and that was
    not written.
    """
    return body["api"] in _ABOUT_TOPICS and doubts.cover(body["topic"], None, offset)


def _have_asked_again(body: dict[str, Any]) -> None:
    body["error"] = int(ProtocolError.NOT_CONTROLLER)
    if "message" in body:
        body["message"] = None


def _refuse_failed(body: dict[str, Any], rejected: str | None) -> None:
    """Answer what was not written; rejected: why ZooKeeper will not take it, None where it was
    changed by somebody else.
    """
    if rejected is not None:
        body["error"] = int(ProtocolError.UNKNOWN_SERVER_ERROR)
        body["message"] = f"ZooKeeper rejects it: {rejected}"
    elif body["api"] == ControllerApi.CREATE_TOPIC:
        body["error"] = int(ProtocolError.TOPIC_ALREADY_EXISTS)
        body["message"] = f"Topic '{body['topic']}' already exists."
    elif body["api"] == ControllerApi.ALTER_REASSIGNMENTS:
        body["error"] = int(ProtocolError.NOT_CONTROLLER)
    elif body["api"] == ControllerApi.CREATE_PARTITIONS:
        body["error"] = int(ProtocolError.REASSIGNMENT_IN_PROGRESS)
        body["message"] = f"Somebody else changed topic '{body['topic']}' meanwhile."
    else:
        body["error"] = int(ProtocolError.UNKNOWN_SERVER_ERROR)
