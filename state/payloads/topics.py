"""Topics: as ZooKeeper has them, and what is asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state.json_values import (
    broker_id_lists,
    int32,
    int32_tuple,
    optional_bool,
    optional_int32,
    optional_text,
    partition_numbers,
    text,
)
from state.limits import PARTITIONS_MAX
from state.matrix import Int32s
from state.payloads.partitions import ObservedStates, states_from_json
from state.topic_ids import topic_id_from_text
from state.topic_overrides import MIN_INSYNC, is_whole_number, min_insync_of


@dataclass(frozen=True, slots=True)
class TopicObserved:
    """A topic as ZooKeeper has it: its partitions' assignment, and their states where present.

    new_topic_id: the id that it gets when it has none yet; zero bytes: it gets none.
    observed_again: a write of ours met other content or was rejected. unwritable: ZooKeeper has
    just rejected a write of it, so nothing is decided that writes it again.
    """

    topic: str
    topic_id: bytes
    new_topic_id: bytes
    unclean: bool | None
    min_insync: int | None
    zk_version: int
    partitions: Int32s
    replicas: Int32s
    adding: Int32s
    removing: Int32s
    states: ObservedStates
    observed_again: bool
    unwritable: bool


def topic_observed(body: dict[str, Any]) -> TopicObserved:
    """Read topic_observed."""
    partitions = partition_numbers(body["partitions"])
    count = len(partitions)
    empty: list[list[int]] = [[] for _ in range(count)]
    return TopicObserved(
        topic=text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        new_topic_id=topic_id_from_text(body.get("new_topic_id")),
        unclean=optional_bool(body.get("unclean")),
        min_insync=optional_int32(body.get("min_insync_replicas")),
        zk_version=int32(body.get("zk_version", 0)),
        partitions=partitions,
        replicas=broker_id_lists(body["replicas"], count),
        adding=broker_id_lists(body.get("adding") or empty, count),
        removing=broker_id_lists(body.get("removing") or empty, count),
        states=states_from_json(body.get("states"), count),
        observed_again=bool(optional_bool(body.get("observed_again"))),
        unwritable=bool(optional_bool(body.get("unwritable"))),
    )


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """A topic's znode is gone; topic_id: of the topic that is, None when it had none.

    observed_again: it is there, but not as we believed, and what it holds follows. unmarked: it is
    not to be deleted, because it could not be marked.
    """

    topic: str
    topic_id: str | None
    observed_again: bool
    unmarked: bool


def topic_removed(body: dict[str, Any]) -> TopicRemoved:
    """Read topic_removed."""
    return TopicRemoved(
        topic=text(body["topic"]),
        topic_id=optional_text(body.get("topic_id")),
        observed_again=bool(optional_bool(body.get("observed_again"))),
        unmarked=bool(optional_bool(body.get("unmarked"))),
    )


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's overrides of unclean.leader.election.enable and min.insync.replicas; None when it
    has none.
    """

    topic: str
    unclean: bool | None
    min_insync: int | None


def topic_config_changed(body: dict[str, Any]) -> TopicConfigChanged:
    """Read topic_config_changed."""
    return TopicConfigChanged(
        topic=text(body["topic"]),
        unclean=optional_bool(body["unclean"]),
        min_insync=optional_int32(body.get("min_insync_replicas")),
    )


@dataclass(frozen=True, slots=True)
class CreateTopicRequested:
    """CreateTopics for one topic; start_index and shift are the placement's random numbers, drawn
    at the gateway. min_insync: what configs say of min.insync.replicas.
    """

    request_id: str
    topic: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    assignment: dict[int, tuple[int, ...]] | None
    configs: dict[str, str]
    min_insync: int | None
    validate_only: bool
    start_index: int
    shift: int


def _partition_count(value: object) -> int:
    count = int32(value)
    if count > PARTITIONS_MAX:
        raise ValueError(f"{count} partitions are more than the {PARTITIONS_MAX} of a topic")
    return count


def _min_insync(configs: dict[str, str]) -> int | None:
    """Return what is said; None for what is no number, which the gateway does not let through."""
    said = configs.get(MIN_INSYNC)
    return min_insync_of(said) if said is not None and is_whole_number(said) else None


def create_topic_requested(body: dict[str, Any]) -> CreateTopicRequested:
    """Read create_topic_requested."""
    assignment = body.get("assignment")
    configs = {text(k): text(v) for k, v in body.get("configs", {}).items()}
    return CreateTopicRequested(
        request_id=text(body["request_id"]),
        topic=text(body["topic"]),
        topic_id=topic_id_from_text(body.get("topic_id")),
        partitions=_partition_count(body["partitions"]),
        replication_factor=int32(body["replication_factor"]),
        assignment=None
        if assignment is None
        else {int32(int(p)): int32_tuple(ids) for p, ids in assignment.items()},
        configs=configs,
        min_insync=_min_insync(configs),
        validate_only=bool(optional_bool(body.get("validate_only"))),
        start_index=int32(body["start_index"]),
        shift=int32(body["shift"]),
    )


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequested:
    """CreatePartitions for one topic; partitions is the new total, assignment the replicas of the
    new ones in order, None to have them placed.
    """

    request_id: str
    topic: str
    partitions: int
    assignment: tuple[tuple[int, ...], ...] | None
    validate_only: bool


def create_partitions_requested(body: dict[str, Any]) -> CreatePartitionsRequested:
    """Read create_partitions_requested."""
    assignment = body.get("assignment")
    return CreatePartitionsRequested(
        request_id=text(body["request_id"]),
        topic=text(body["topic"]),
        partitions=_partition_count(body["partitions"]),
        assignment=None if assignment is None else tuple(map(int32_tuple, assignment)),
        validate_only=bool(optional_bool(body.get("validate_only"))),
    )


@dataclass(frozen=True, slots=True)
class DeleteTopicRequested:
    """DeleteTopics for one topic; topic_id is None when the client named the topic."""

    request_id: str
    topic: str
    topic_id: str | None


def delete_topic_requested(body: dict[str, Any]) -> DeleteTopicRequested:
    """Read delete_topic_requested."""
    return DeleteTopicRequested(
        text(body["request_id"]), text(body["topic"]), optional_text(body.get("topic_id"))
    )


@dataclass(frozen=True, slots=True)
class TopicDeletionRequested:
    """A topic is named under `/admin/delete_topics`.

    topic_id: of the topic that was seen under that name at that time, None when it had none.
    """

    topic: str
    topic_id: str | None


def topic_deletion_requested(body: dict[str, Any]) -> TopicDeletionRequested:
    """Read topic_deletion_requested."""
    return TopicDeletionRequested(text(body["topic"]), optional_text(body.get("topic_id")))


@dataclass(frozen=True, slots=True)
class TopicDeletionWithdrawn:
    """A topic is not named under `/admin/delete_topics` any more, and is still there."""

    topic: str
    topic_id: str


def topic_deletion_withdrawn(body: dict[str, Any]) -> TopicDeletionWithdrawn:
    """Read topic_deletion_withdrawn."""
    return TopicDeletionWithdrawn(text(body["topic"]), text(body["topic_id"]))
