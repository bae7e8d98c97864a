"""The JSON bodies of decisions, field by field; docs/decision-log.md says what they mean.

Those of replies are in `state.reply_bodies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, TypeAlias, TypedDict, cast, final

from state.groups.change_bodies import Change
from state.json_values import objects

Assignment: TypeAlias = Mapping[str, list[int]]
"""Broker ids in order, by partition number in digits."""


def by_number(assignment: Assignment) -> dict[int, list[int]]:
    """Return the broker ids by partition number."""
    return {int(partition): ids for partition, ids in assignment.items()}


class Fence(TypedDict):
    """What every write is fenced by: the version of `/controller_epoch` it was decided under."""

    epoch_zk_version: int


class Claim(Fence):
    """Under which claim of the role something was decided."""

    controller_epoch: int


class EndpointBody(TypedDict):
    """Where a node is reached on one of its listeners; the protocol by Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int


def endpoint_bodies(values: Iterable[object]) -> tuple[EndpointBody, ...]:
    """Return the endpoints of a list as they came: no decision looks into them. Raises TypeError
    for one that is no object.
    """
    return cast("tuple[EndpointBody, ...]", objects(values))


class RegistrationBody(TypedDict):
    """A registered broker; its epoch is the czxid of its registration."""

    id: int
    epoch: int
    rack: str | None
    endpoints: list[EndpointBody]


class UpdateBrokers(Claim):
    """update_brokers."""

    brokers: list[RegistrationBody]
    introduced: list[int]
    complete: bool
    controller_id: int
    controller_endpoints: list[EndpointBody]


class CreateTopic(Claim):
    """create_topic."""

    request_id: str
    topic: str
    topic_id: str | None
    configs: Mapping[str, str]
    assignment: Assignment


class RewriteAssignment(Claim):
    """rewrite_assignment and complete_reassignment."""

    topic: str
    topic_id: str | None
    expected_version: int
    assignment: Assignment
    adding: Assignment
    removing: Assignment


class MarkTopicDeletion(Fence):
    """mark_topic_deletion and unmark_topic_deletion."""

    topic: str


class DeleteTopic(Fence):
    """delete_topic."""

    topic: str
    topic_id: str | None
    leftovers: bool


class ForgetTopic(TypedDict):
    """forget_topic."""

    topic: str
    observed_again: NotRequired[bool]


class RemoveReassignments(Fence):
    """remove_reassignments."""

    topic: str
    partitions: list[tuple[int, list[int] | None]]


class DeleteAdminZnode(Fence):
    """delete_admin_znode."""

    path: str
    expected_version: int


class DeleteDelegationToken(Fence):
    """delete_delegation_token."""

    token_id: str
    owner: str
    expired_at_ms: int
    expected_version: int


class WriteProducerIdBlock(Fence):
    """write_producer_id_block."""

    broker: int
    block_start: int
    block_end: int
    expected_version: int


class CheckShutdown(TypedDict):
    """check_shutdown."""

    request_id: str
    broker_id: int
    broker_epoch: int
    version: int
    live: list[int]


class SetPause(TypedDict):
    """set_pause."""

    paused: bool
    reason: str


class ArmTimer(TypedDict):
    """arm_timer."""

    timer: str
    deadline_ms: int
    slack_ms: NotRequired[int]


class SetAside(TypedDict):
    """set_aside."""

    kind: str
    key: str
    reason: str
    payload_bytes: int


@final
class UndoAssignment(TypedDict):
    """Of a write with the assignments of a generation."""

    generation: int


@final
class UndoNewId(TypedDict):
    """Of a write with a static member's new id: what the member and the group had before."""

    instance: str
    member: str
    old_member: str
    old_leader: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int


@final
class UndoTransaction(TypedDict):
    """Of a write with offsets of a transaction."""

    producer_id: int


Undo: TypeAlias = UndoAssignment | UndoNewId | UndoTransaction
"""What the machine needs to take back a write whose records were refused."""


class GroupStep(TypedDict):
    """A step of change_group; with records it is a write."""

    changes: list[Change]
    replies: list[dict[str, Any]]
    records: NotRequired[list[dict[str, Any]]]
    write: NotRequired[int]
    undo: NotRequired[Undo]
    quiet: NotRequired[bool]
    producer: NotRequired[tuple[int, int]]


def awaits_records(step: GroupStep) -> bool:
    """Return whether what a step changes is true only once its records are appended; of others,
    quiet ones among them, it is at once.
    """
    return "records" in step and not step.get("quiet")


class ChangeGroup(TypedDict):
    """change_group."""

    group: str
    partition: int
    steps: list[GroupStep]


Body: TypeAlias = (
    UpdateBrokers
    | CreateTopic
    | RewriteAssignment
    | MarkTopicDeletion
    | DeleteTopic
    | ForgetTopic
    | RemoveReassignments
    | DeleteAdminZnode
    | DeleteDelegationToken
    | WriteProducerIdBlock
    | CheckShutdown
    | SetPause
    | ArmTimer
    | SetAside
    | ChangeGroup
)
"""What stands in a decision that is neither a block nor a reply."""
