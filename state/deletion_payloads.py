"""Typed payloads of the events about topic deletion, and how they are read from JSON objects.

Readers raise KeyError, TypeError or ValueError as those of `state.payload_readers` do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from state.json_values import partition_numbers, text, whole_number, whole_numbers
from state.matrix import Int32s


@dataclass(frozen=True, slots=True)
class TopicDeletionRequested:
    """A topic is named under `/admin/delete_topics`.

    topic_id: of the topic that was seen under that name at that time, None when it had none.
    """

    topic: str
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class DeleteTopicRequested:
    """DeleteTopics for one topic; topic_id is None when the client named the topic."""

    request_id: str
    topic: str
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    """Per-partition answers of a broker (protocol error codes) that was told to delete replicas of
    one topic.
    """

    broker_id: int
    broker_epoch: int
    topic: str
    partitions: Int32s
    errors: Int32s


DeletionPayload: TypeAlias = TopicDeletionRequested | DeleteTopicRequested | StopReplicaAnswered


def _optional_text(value: object) -> str | None:
    return None if value is None else text(value)


def topic_deletion_requested(body: dict[str, Any]) -> TopicDeletionRequested:
    """Read topic_deletion_requested."""
    return TopicDeletionRequested(text(body["topic"]), _optional_text(body.get("topic_id")))


def delete_topic_requested(body: dict[str, Any]) -> DeleteTopicRequested:
    """Read delete_topic_requested."""
    return DeleteTopicRequested(
        text(body["request_id"]), text(body["topic"]), _optional_text(body.get("topic_id"))
    )


def stop_replica_answered(body: dict[str, Any]) -> StopReplicaAnswered:
    """Read stop_replica_answered."""
    partitions, errors = partition_numbers(body["partitions"]), whole_numbers(body["errors"])
    if len(partitions) != len(errors):
        raise ValueError(f"{len(errors)} errors for {len(partitions)} partitions")
    return StopReplicaAnswered(
        broker_id=whole_number(body["broker_id"]),
        broker_epoch=whole_number(body["broker_epoch"]),
        topic=text(body["topic"]),
        partitions=partitions,
        errors=errors,
    )
