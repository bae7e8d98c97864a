"""The bodies of replies, by whom they answer; docs/decision-log.md says what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class ControllerApi(StrEnum):
    """Requests to the controller; the values stand in replies."""

    ALTER_PARTITION = "alter_partition"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    CREATE_TOPIC = "create_topic"
    CREATE_PARTITIONS = "create_partitions"
    DELETE_TOPIC = "delete_topic"
    ELECT_LEADERS = "elect_leaders"
    ALTER_REASSIGNMENTS = "alter_reassignments"
    RAISE_LEADER_EPOCHS = "raise_leader_epochs"
    PRODUCER_IDS = "producer_ids"


PartitionsApi: TypeAlias = Literal[ControllerApi.ELECT_LEADERS, ControllerApi.ALTER_REASSIGNMENTS]


class PartitionError(TypedDict):
    """The answer about a partition; error: a code of the protocol."""

    partition: int
    error: int


class IsrAnswer(PartitionError):
    """The state of a partition of which an ISR was accepted; only its error where it was not."""

    leader: NotRequired[int]
    leader_epoch: NotRequired[int]
    isr: NotRequired[list[int]]
    recovery: NotRequired[int]
    partition_epoch: NotRequired[int]


class ReassignmentAnswer(PartitionError):
    """Why a partition is not set in motion."""

    message: str | None


class AnyReply(TypedDict):
    """What every reply says; error: a code of the protocol."""

    request_id: str
    error: int


class TopicReply(AnyReply):
    """A reply about a topic."""

    topic: str


class AlterPartitionReply(TopicReply):
    """The answers about the partitions of a topic that a leader asked for."""

    api: Literal[ControllerApi.ALTER_PARTITION]
    topic_id: str | None
    partitions: list[IsrAnswer]


class ControlledShutdownReply(AnyReply):
    """Its partitions are in report_remaining."""

    api: Literal[ControllerApi.CONTROLLED_SHUTDOWN]


class CreateTopicReply(TopicReply):
    """What was created, or would be."""

    api: Literal[ControllerApi.CREATE_TOPIC]
    topic_id: str | None
    message: str | None
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class CreatePartitionsReply(TopicReply):
    """Whether a topic has more partitions now."""

    api: Literal[ControllerApi.CREATE_PARTITIONS]
    message: str | None


class DeleteTopicReply(TopicReply):
    """Whether a topic is marked; topic_id None: who asked gave its name."""

    api: Literal[ControllerApi.DELETE_TOPIC]
    topic_id: str | None


class PartitionsReply(TopicReply):
    """What became of elections, or what is set in motion or not any more."""

    api: PartitionsApi
    partitions: Sequence[PartitionError]


class RaiseLeaderEpochsReply(TopicReply):
    """Whether a topic's leader epochs are raised."""

    api: Literal[ControllerApi.RAISE_LEADER_EPOCHS]


class ProducerIdsReply(AnyReply):
    """A block of ids, where there is no error."""

    api: Literal[ControllerApi.PRODUCER_IDS]
    producer_id_start: NotRequired[int]
    producer_id_len: NotRequired[int]


Reply: TypeAlias = (
    AlterPartitionReply
    | ControlledShutdownReply
    | CreateTopicReply
    | CreatePartitionsReply
    | DeleteTopicReply
    | PartitionsReply
    | RaiseLeaderEpochsReply
    | ProducerIdsReply
)
"""What stands in a reply."""


def partition_errors(reply: Mapping[str, Any]) -> dict[int, int]:
    """Return the error of each partition that a reply answers for: the reply's own, where there is
    one, stands for all of them.
    """
    listed = reply.get("partitions")
    answers = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {one["partition"]: int(reply["error"] or one["error"]) for one in answers}
