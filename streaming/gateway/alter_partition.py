"""AlterPartition: a request of many topics becomes one event per topic."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from state.event_kinds import EventKind
from state.json_values import replica_ids
from state.partitions.isr import errors_for_version
from state.protocol_errors import ProtocolError
from state.reply_bodies import IsrAnswer
from state.topic_ids import topic_id_to_text
from streaming.gateway.calls import Call
from streaming.gateway.cluster_requests import ClusterRequests
from streaming.gateway.ports import ClusterView, ReplyBody
from streaming.gateway.topics_by_id import name_of, reply_by_id
from streaming.image.cluster_image import ClusterImage
from streaming.wire.schema_codec import Body

_TOPIC_IDS_SINCE = 2
_BROKER_EPOCHS_SINCE = 3


@dataclass(slots=True)
class _Topic:
    """One topic of the request. key is "" when nobody knows the topic's id: the cluster machine
    answers then. partitions: the event's partitions by number; refused: the errors of those that no
    event can hold, a number below 0 or an impossible ISR.
    """

    key: str
    name: str
    topic_id: UUID | None
    partitions: dict[int, dict[str, Any]] = field(default_factory=dict)
    refused: dict[int, ProtocolError] = field(default_factory=dict)


class AlterPartition:
    """Answers AlterPartition, versions 0-3 (KafkaController.tryProcessAlterPartition).

    An error that concerns the whole request (NOT_CONTROLLER, STALE_BROKER_EPOCH, no reply in time)
    is answered for the whole request, whichever topic's reply has it: the broker sends everything
    again, and what was accepted meanwhile is answered as already done.
    """

    def __init__(self, view: ClusterView, requests: ClusterRequests) -> None:
        """Take what is known of the cluster, and what has requests decided."""
        self._view = view
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer when all topics were decided."""
        image = self._view.image()
        if image is None or not self._view.is_controller():
            return {"error_code": ProtocolError.NOT_CONTROLLER, "topics": []}
        topics = _topics(call, image)
        # A request without partitions still has its broker epoch checked.
        asked = [topic for topic in topics if topic.partitions] or [_Topic("", "", None)]
        replies = await asyncio.gather(*(self._decided(call, topic) for topic in asked))
        for reply in replies:
            if reply["error"] != ProtocolError.NONE:
                return {"error_code": reply["error"], "topics": []}
        found = {
            (topic.name, topic.topic_id): reply["partitions"]
            for topic, reply in zip(asked, replies, strict=True)
        }
        answers = [
            _answer(topic, found.get((topic.name, topic.topic_id), []), call.version)
            for topic in topics
        ]
        return {"error_code": ProtocolError.NONE, "topics": answers}

    async def _decided(self, call: Call, topic: _Topic) -> ReplyBody:
        def ask(name: str) -> Awaitable[ReplyBody]:
            kind = EventKind.ALTER_PARTITION_REQUESTED
            return self._requests.reply(kind, name, _payload(call, topic, name))

        _, reply = await reply_by_id(
            topic.key,
            ask,
            # Each partition has the error then; an error of the whole reply is about the request.
            is_unknown=lambda reply: bool(reply["error"] == ProtocolError.NONE),
            find_name=lambda: _name_of(self._view.image(), topic.topic_id),
        )
        return reply


def _topics(call: Call, image: ClusterImage) -> list[_Topic]:
    """Return the topics in the order asked; of a partition that is named twice the last one
    counts, as in Kafka.
    """
    topics: dict[tuple[str, UUID | None], _Topic] = {}
    for entry in call.body["topics"]:
        by_id = call.version >= _TOPIC_IDS_SINCE
        name, topic_id = ("", entry["topic_id"]) if by_id else (entry["topic_name"], None)
        key = _name_of(image, topic_id) if by_id else name
        topic = topics.setdefault((name, topic_id), _Topic(key, name, topic_id))
        for partition in entry["partitions"]:
            _take(topic, _partition(call, partition))
    return list(topics.values())


def _take(topic: _Topic, asked: dict[str, Any]) -> None:
    number = asked["partition"]
    topic.partitions.pop(number, None)
    topic.refused.pop(number, None)
    error = _error(topic, asked)
    if error is ProtocolError.NONE:
        topic.partitions[number] = asked
    else:
        topic.refused[number] = error


def _error(topic: _Topic, asked: dict[str, Any]) -> ProtocolError:
    """Return why no event can hold a partition: its reader would set the whole event aside."""
    if asked["partition"] < 0:
        return (
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
            if topic.key
            else ProtocolError.UNKNOWN_TOPIC_ID
        )
    try:
        replica_ids(asked["isr"])
    except ValueError:
        return ProtocolError.INVALID_REQUEST
    return ProtocolError.NONE


def _name_of(image: ClusterImage | None, topic_id: UUID | None) -> str:
    return "" if topic_id is None else name_of(image, topic_id.bytes)


def _partition(call: Call, partition: Body) -> dict[str, Any]:
    members = partition["new_isr_with_epochs"]
    isr = partition["new_isr"]
    if call.version >= _BROKER_EPOCHS_SINCE:  # only KRaft's controller looks at their epochs
        isr = [member["broker_id"] for member in members]
    return {
        "partition": partition["partition_index"],
        "leader_epoch": partition["leader_epoch"],
        "partition_epoch": partition["partition_epoch"],
        "recovery": partition["leader_recovery_state"],
        "isr": isr,
    }


def _payload(call: Call, topic: _Topic, name: str) -> dict[str, Any]:
    return {
        "broker_id": call.body["broker_id"],
        "broker_epoch": call.body["broker_epoch"],
        "version": call.version,
        "topic": name,
        "topic_id": None if topic.topic_id is None else topic_id_to_text(topic.topic_id.bytes),
        "partitions": list(topic.partitions.values()),
    }


def _answer(topic: _Topic, decided: list[IsrAnswer], version: int) -> Body:
    refused: list[IsrAnswer] = [
        {"partition": number, "error": topic.refused[number]} for number in sorted(topic.refused)
    ]
    answers = [*decided, *refused]
    errors = [one["error"] for one in answers]
    if any(errors):
        errors = errors_for_version(np.array(errors, dtype=np.int32), version).tolist()
    return {
        "topic_name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": list(map(_answer_partition, answers, errors)),
    }


def _answer_partition(partition: IsrAnswer, error: int) -> Body:
    if error != ProtocolError.NONE:
        return {"partition_index": partition["partition"], "error_code": error}
    return {
        "partition_index": partition["partition"],
        "error_code": ProtocolError.NONE,
        "leader_id": partition["leader"],
        "leader_epoch": partition["leader_epoch"],
        "isr": partition["isr"],
        "leader_recovery_state": partition["recovery"],
        "partition_epoch": partition["partition_epoch"],
    }
