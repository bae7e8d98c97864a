"""Typed payloads of the events about consumer groups.

Bytes (member metadata, assignments) stay the base64 text they travel as: the machines compare and
pass them on, and need their content in one place only (`state.groups.subscription`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from state.groups.offset_rows import OffsetRow, TopicPartition

Protocols: TypeAlias = tuple[tuple[str, str], ...]
"""Names of protocols with the member's metadata (base64), the preferred one first."""


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A request about one group that waits for an answer.

    partition: the group's partition of `__consumer_offsets`. version: of the request.
    """

    request_id: str
    partition: int
    group: str
    version: int


@dataclass(frozen=True, slots=True)
class JoinGroupRequested(GroupRequest):
    """JoinGroup; member is "" when the client has no id yet, new_member the id it gets then."""

    member: str
    new_member: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str


@dataclass(frozen=True, slots=True)
class SyncGroupRequested(GroupRequest):
    """SyncGroup; protocol_type and protocol are None below version 5."""

    generation: int
    member: str
    instance: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, str]


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """Who leaves, and why, "" where it is not said (KIP-800); member is "" when an administrator
    removes a static member.
    """

    member: str
    instance: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveGroupRequested(GroupRequest):
    """LeaveGroup; one member below version 3."""

    members: tuple[LeavingMember, ...]


@dataclass(frozen=True, slots=True)
class OffsetCommitRequested(GroupRequest):
    """OffsetCommit; generation is -1 for who is no member. offsets: as committed, in order.

    retention_ms: None unless the request (versions 2 to 4) brings its own.
    """

    member: str
    instance: str | None
    generation: int
    retention_ms: int | None
    offsets: tuple[tuple[TopicPartition, int, int, str], ...]


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequested(GroupRequest):
    """TxnOffsetCommit; verification_error: what asking the transaction coordinator ended with."""

    producer_id: int
    producer_epoch: int
    member: str
    instance: str | None
    generation: int
    verification_error: int
    offsets: tuple[tuple[TopicPartition, int, int, str], ...]


@dataclass(frozen=True, slots=True)
class OffsetsAppended:
    """Offsets that were committed and are in `__consumer_offsets`, the newest of each partition.

    offsets: partition, offset, leader epoch, metadata, commit time in ms; in the order of their
    commits.
    """

    partition: int
    group: str
    offsets: tuple[tuple[TopicPartition, int, int, str, int], ...]


@dataclass(frozen=True, slots=True)
class CommittedTopicsDeleted:
    """Topics ceased to exist that a group may have committed offsets of."""

    partition: int
    group: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequested(GroupRequest):
    """OffsetDelete of one group."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroupRequested(GroupRequest):
    """DeleteGroups, one event for each group."""


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """A member as `__consumer_offsets` has it; metadata is that of the group's protocol."""

    member: str
    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: str
    assignment: str


@dataclass(frozen=True, slots=True)
class ObservedMetadata:
    """A group's record in `__consumer_offsets`; state_since_ms is None where it says nothing."""

    generation: int
    protocol_type: str
    protocol: str | None
    leader: str | None
    state_since_ms: int | None
    members: tuple[ObservedMember, ...]


@dataclass(frozen=True, slots=True)
class GroupObserved:
    """What `__consumer_offsets` holds of a group; metadata is None where there are offsets only.

    pending: offsets of transactions without a marker, by producer id.
    """

    partition: int
    epoch: int
    group: str
    metadata: ObservedMetadata | None
    offsets: dict[TopicPartition, OffsetRow]
    pending: dict[int, dict[TopicPartition, OffsetRow]]


@dataclass(frozen=True, slots=True)
class GroupRecordsRefused:
    """Records of a decision could not be appended.

    write: event offset and index of the write. replies: bodies of the replies that waited for it.
    undo: as in the decision. offsets: what is appended for each partition of the write, None where
    nothing is.
    """

    partition: int
    group: str
    write: tuple[int, int]
    error: int
    replies: tuple[dict[str, object], ...]
    undo: dict[str, object] | None
    offsets: dict[TopicPartition, OffsetRow | None]


@dataclass(frozen=True, slots=True)
class GroupRecordsOvertaken:
    """Offset records came to stand behind later ones of the same group in `__consumer_offsets`."""

    partition: int
    group: str
    write: tuple[int, int]
    producer_id: int | None
    offsets: dict[TopicPartition, OffsetRow]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member that was heard of.

    silent_ms: how long before the event that was the last time; the member was not silent for a
    session until then. None: at the event's time, and nothing is said of before.
    """

    group: str
    member: str
    instance: str | None
    generation: int
    silent_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatsReceived:
    """Heartbeats of members of groups of one bucket, since the last such event."""

    heartbeats: tuple[Heartbeat, ...]


@dataclass(frozen=True, slots=True)
class GroupTimerDue:
    """The armed deadline of a bucket has come."""

    timer: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsExpirationDue:
    """It is time to look for expired offsets in a bucket."""


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfigured:
    """The configuration that decisions about groups depend on, by Kafka's names."""

    config: dict[str, object]


@dataclass(frozen=True, slots=True)
class GroupPartitionsElected:
    """We are now coordinator of partitions of `__consumer_offsets`; their groups are loading."""

    partitions: tuple[int, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class GroupPartitionsLoaded:
    """All groups of these partitions have been observed."""

    partitions: tuple[int, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class GroupPartitionsResigned:
    """We are no longer coordinator of these partitions; epoch is None when it is not known.

    unheard: nobody can say who was heard of lately, so no session ends by it.
    """

    partitions: tuple[int, ...]
    epoch: int | None
    unheard: bool = False


@dataclass(frozen=True, slots=True)
class TransactionCompleted:
    """A commit or abort marker was written to partitions of `__consumer_offsets`."""

    producer_id: int
    committed: bool
    partitions: tuple[int, ...]


GroupPayload: TypeAlias = (
    JoinGroupRequested
    | SyncGroupRequested
    | LeaveGroupRequested
    | OffsetCommitRequested
    | TxnOffsetCommitRequested
    | OffsetDeleteRequested
    | DeleteGroupRequested
    | OffsetsAppended
    | CommittedTopicsDeleted
    | GroupObserved
    | GroupRecordsRefused
    | GroupRecordsOvertaken
    | HeartbeatsReceived
    | GroupTimerDue
    | OffsetsExpirationDue
    | GroupCoordinatorConfigured
    | GroupPartitionsElected
    | GroupPartitionsLoaded
    | GroupPartitionsResigned
    | TransactionCompleted
)
