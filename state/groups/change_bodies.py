"""What a change_group decision says of each change, field by field.

docs/decision-log.md says what the fields mean.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, final

from state.groups.change_kinds import ChangeKind

OffsetValues: TypeAlias = list[Any]
"""A committed offset as `offset_rows.row_values` gives it."""

Partition: TypeAlias = list[Any]
"""[topic, partition]."""


class Dated(TypedDict):
    """A change, and when it happened, which the turn adds."""

    at_ms: NotRequired[int]


class Timeouts(TypedDict):
    """What a member says of how long it is waited for."""

    session_timeout_ms: int
    rebalance_timeout_ms: int


@final
class GroupCreated(Dated):
    """Nothing is known of a new group yet."""

    change: Literal[ChangeKind.GROUP_CREATED]


class NewMember(Timeouts):
    """A member that was not there before."""

    member: str
    instance: str | None
    client: str
    host: str


@final
class MemberAdded(Dated, NewMember):
    """A member joined; protocol_type: the group's."""

    change: Literal[ChangeKind.MEMBER_ADDED]
    protocol_type: str | None


@final
class MemberUpdated(Dated, Timeouts):
    """A member joined again."""

    change: Literal[ChangeKind.MEMBER_UPDATED]
    member: str


@final
class MemberReplaced(Dated, Timeouts):
    """A static member came back under a new id."""

    change: Literal[ChangeKind.MEMBER_REPLACED]
    instance: str
    member: str
    new_member: str
    metadata: str


@final
class MemberRemoved(Dated):
    """A member is gone."""

    change: Literal[ChangeKind.MEMBER_REMOVED]
    member: str
    instance: str | None
    reason: str


@final
class RebalanceStarted(Dated):
    """Members are to join again."""

    change: Literal[ChangeKind.REBALANCE_STARTED]
    reason: str


@final
class GenerationStarted(Dated):
    """Members have joined: [id, instance, metadata] of each."""

    change: Literal[ChangeKind.GENERATION_STARTED]
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: list[tuple[str, str | None, str]]


@final
class AssignmentDistributed(Dated):
    """[member, assignment] of each."""

    change: Literal[ChangeKind.ASSIGNMENT_DISTRIBUTED]
    generation: int
    assignments: list[tuple[str, str]]


@final
class GroupEmptied(Dated):
    """The last member is gone."""

    change: Literal[ChangeKind.GROUP_EMPTIED]
    generation: int


class LoadedMember(NewMember):
    """A member that a load found."""

    metadata: str
    assignment: str


class LoadedMetadata(TypedDict):
    """What a group is but for its offsets."""

    generation: int
    protocol_type: str
    protocol: str | None
    leader: str | None
    state_since_ms: int | None
    members: list[LoadedMember]


@final
class GroupLoaded(Dated):
    """A group as it was found; pending: [producer id, rows] of its open transactions."""

    change: Literal[ChangeKind.GROUP_LOADED]
    state: str
    metadata: LoadedMetadata
    offsets: list[OffsetValues]
    pending: list[tuple[int, list[OffsetValues]]]


@final
class GroupRemoved(Dated):
    """A group is gone."""

    change: Literal[ChangeKind.GROUP_REMOVED]
    reason: str


@final
class OffsetsCommitted(Dated):
    """Offsets that are visible now."""

    change: Literal[ChangeKind.OFFSETS_COMMITTED]
    offsets: list[OffsetValues]


@final
class TransactionPending(Dated):
    """Offsets that an open transaction would commit."""

    change: Literal[ChangeKind.TRANSACTION_PENDING]
    producer_id: int
    offsets: list[OffsetValues]


@final
class TransactionEnded(Dated):
    """The end of a transaction; offsets: those that became visible."""

    change: Literal[ChangeKind.TRANSACTION_COMPLETED]
    producer_id: int
    committed: bool
    offsets: list[OffsetValues]


@final
class TransactionReverted(Dated):
    """Offsets of a transaction whose records could not be appended."""

    change: Literal[ChangeKind.TRANSACTION_REVERTED]
    producer_id: int
    partitions: list[Partition]


@final
class OffsetsRemoved(Dated):
    """Offsets that were deleted, or expired."""

    change: Literal[ChangeKind.OFFSETS_REMOVED]
    partitions: list[Partition]
    reason: str


Change: TypeAlias = (
    GroupCreated
    | MemberAdded
    | MemberUpdated
    | MemberReplaced
    | MemberRemoved
    | RebalanceStarted
    | GenerationStarted
    | AssignmentDistributed
    | GroupEmptied
    | GroupLoaded
    | GroupRemoved
    | OffsetsCommitted
    | TransactionPending
    | TransactionEnded
    | TransactionReverted
    | OffsetsRemoved
)
