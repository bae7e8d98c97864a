"""What a change_group decision says of each change, field by field; `at_ms` is the turn's to add.

docs/decision-log.md says what the fields mean.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from state.groups.change_kinds import ChangeKind

Row: TypeAlias = list[Any]
"""A committed offset as `offset_rows.row_values` gives it."""

Partition: TypeAlias = list[Any]
"""[topic, partition]."""


class GroupCreated(TypedDict):
    """Nothing is known of a new group yet."""

    change: Literal[ChangeKind.GROUP_CREATED]


class DescribedMember(TypedDict):
    """A member that was not there before."""

    member: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int


class MemberAdded(DescribedMember):
    """A member joined; protocol_type: the group's."""

    change: Literal[ChangeKind.MEMBER_ADDED]
    protocol_type: str | None


class MemberUpdated(TypedDict):
    """A member joined again."""

    change: Literal[ChangeKind.MEMBER_UPDATED]
    member: str
    session_timeout_ms: int
    rebalance_timeout_ms: int


class MemberReplaced(TypedDict):
    """A static member came back under a new id."""

    change: Literal[ChangeKind.MEMBER_REPLACED]
    instance: str
    member: str
    new_member: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: str


class MemberRemoved(TypedDict):
    """A member is gone."""

    change: Literal[ChangeKind.MEMBER_REMOVED]
    member: str
    instance: str | None
    reason: str


class RebalanceStarted(TypedDict):
    """Members are to join again."""

    change: Literal[ChangeKind.REBALANCE_STARTED]
    reason: str


class GenerationStarted(TypedDict):
    """Members have joined: [id, instance, metadata] of each."""

    change: Literal[ChangeKind.GENERATION_STARTED]
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: list[tuple[str, str | None, str]]


class AssignmentDistributed(TypedDict):
    """[member, assignment] of each."""

    change: Literal[ChangeKind.ASSIGNMENT_DISTRIBUTED]
    generation: int
    assignments: list[tuple[str, str]]


class GroupEmptied(TypedDict):
    """The last member is gone."""

    change: Literal[ChangeKind.GROUP_EMPTIED]
    generation: int


class LoadedMember(DescribedMember):
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


class LoadedGroup(TypedDict):
    """A whole group; pending: [producer id, rows] of its open transactions."""

    state: str
    metadata: LoadedMetadata
    offsets: list[Row]
    pending: list[tuple[int, list[Row]]]


class GroupLoaded(LoadedGroup):
    """A group as it was found."""

    change: Literal[ChangeKind.GROUP_LOADED]


class GroupRemoved(TypedDict):
    """A group is gone."""

    change: Literal[ChangeKind.GROUP_REMOVED]
    reason: str


class OffsetsCommitted(TypedDict):
    """Offsets that are visible now."""

    change: Literal[ChangeKind.OFFSETS_COMMITTED]
    offsets: list[Row]


class TransactionPending(TypedDict):
    """Offsets that an open transaction would commit."""

    change: Literal[ChangeKind.TRANSACTION_PENDING]
    producer_id: int
    offsets: list[Row]


class TransactionCompleted(TypedDict):
    """The end of a transaction; offsets: those that became visible."""

    change: Literal[ChangeKind.TRANSACTION_COMPLETED]
    producer_id: int
    committed: bool
    offsets: list[Row]


class TransactionReverted(TypedDict):
    """Offsets of a transaction whose records could not be appended."""

    change: Literal[ChangeKind.TRANSACTION_REVERTED]
    producer_id: int
    partitions: list[Partition]


class OffsetsRemoved(TypedDict):
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
    | TransactionCompleted
    | TransactionReverted
    | OffsetsRemoved
)
