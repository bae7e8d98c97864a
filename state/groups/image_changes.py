"""What each change of a change_group decision does to the image of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from state.groups import change_bodies as bodies
from state.groups.change_kinds import ChangeKind
from state.groups.group import leader_without
from state.groups.offset_rows import UNLOGGED, OffsetRow, OffsetRows, read_rows, revert
from state.groups.states import GroupState
from state.topic_partition import TopicPartition


@dataclass(slots=True)
class MemberView:
    """A member as it is described; metadata and assignment are base64."""

    instance: str | None
    client: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    metadata: str = ""
    assignment: str = ""


class DirectCommit(Protocol):
    """A commit that was answered from the image; it is appended to the log later.

    layout: equal for commits of the same partitions.
    """

    @property
    def layout(self) -> Hashable:
        """What stands for the partitions."""

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """The partitions whose offsets it commits."""

    def rows(self) -> OffsetRows:
        """Return what it commits, at the position UNLOGGED."""


@dataclass(slots=True)
class GroupView:
    """A group as requests see it; what Group has under the same names means the same.

    assigned_as: what the leader of this generation calls static members that have another id since.
    completing_since_ms: when this generation began to wait for its assignment.
    """

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    completing_since_ms: int = 0
    members: dict[str, MemberView] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    assigned_as: dict[str, str] = field(default_factory=dict)
    pending: dict[int, OffsetRows] = field(default_factory=dict)
    _offsets: OffsetRows = field(default_factory=dict)
    _unopened: dict[Hashable, DirectCommit] = field(default_factory=dict)

    @property
    def offsets(self) -> OffsetRows:
        """The committed offsets; what is changed in them is kept."""
        if self._unopened:
            for one in self._unopened.values():
                self._offsets.update(one.rows())
            self._unopened.clear()
        return self._offsets

    def apply_commit(self, commit: DirectCommit) -> None:
        """Keep a commit unopened: the next of the same layout replaces it."""
        self._unopened.pop(commit.layout, None)
        self._unopened[commit.layout] = commit


def _created(view: GroupView, change: bodies.GroupCreated) -> None:
    """Nothing is known of it yet."""


def _member_added(view: GroupView, change: bodies.MemberAdded) -> None:
    _add(view, change)
    view.protocol_type = change["protocol_type"]


def _add(view: GroupView, added: bodies.NewMember) -> MemberView:
    member, instance = added["member"], added["instance"]
    view.members[member] = held = MemberView(
        instance,
        added["client"],
        added["host"],
        added["session_timeout_ms"],
        added["rebalance_timeout_ms"],
    )
    if instance is not None:
        view.instances[instance] = member
    return held


def _member_replaced(view: GroupView, change: bodies.MemberReplaced) -> None:
    old, new = change["member"], change["new_member"]
    view.members = {new if one == old else one: held for one, held in view.members.items()}
    view.instances[change["instance"]] = new
    view.assigned_as[new] = view.assigned_as.pop(old, old)
    if view.leader == old:
        view.leader = new
    _update(view.members.get(new), change)
    if new in view.members:
        view.members[new].metadata = change["metadata"]


def _member_updated(view: GroupView, change: bodies.MemberUpdated) -> None:
    _update(view.members.get(change["member"]), change)


def _update(
    member: MemberView | None, change: bodies.MemberUpdated | bodies.MemberReplaced
) -> None:
    if member is not None:
        member.session_timeout_ms = change["session_timeout_ms"]
        member.rebalance_timeout_ms = change["rebalance_timeout_ms"]


def _member_removed(view: GroupView, change: bodies.MemberRemoved) -> None:
    member, instance = change["member"], change["instance"]
    view.members.pop(member, None)
    view.leader = leader_without(view.leader, member, view.members)
    if instance is not None and view.instances.get(instance) == member:
        del view.instances[instance]


def _rebalance_started(view: GroupView, change: bodies.RebalanceStarted) -> None:
    view.state = GroupState.PREPARING


def _generation_started(view: GroupView, change: bodies.GenerationStarted) -> None:
    view.state = GroupState.COMPLETING
    view.generation = change["generation"]
    view.protocol_type = change["protocol_type"]
    view.protocol = change["protocol"]
    view.leader = change["leader"]
    view.completing_since_ms = change["at_ms"]
    view.assigned_as.clear()
    for member, _, metadata in change["members"]:
        view.members[member].metadata = metadata
        view.members[member].assignment = ""


def _assignment_distributed(view: GroupView, change: bodies.AssignmentDistributed) -> None:
    """A group that went on while the records were on their way does not go back."""
    if view.state is not GroupState.COMPLETING or view.generation != change["generation"]:
        return
    view.state = GroupState.STABLE
    assignments = dict(change["assignments"])
    for member, held in view.members.items():
        held.assignment = assignments.get(view.assigned_as.get(member, member), "")


def _group_emptied(view: GroupView, change: bodies.GroupEmptied) -> None:
    view.state = GroupState.EMPTY
    view.generation = change["generation"]
    view.protocol = view.leader = None


def _group_loaded(view: GroupView, change: bodies.GroupLoaded) -> None:
    metadata = change["metadata"]
    view.state = GroupState(change["state"])
    view.generation = metadata["generation"]
    view.protocol_type = metadata["protocol_type"] or None
    view.protocol = metadata["protocol"]
    view.leader = metadata["leader"]
    for member in metadata["members"]:
        held = _add(view, member)
        held.metadata, held.assignment = member["metadata"], member["assignment"]
    view.offsets.update(read_rows(change["offsets"]))
    view.pending = {producer: read_rows(rows) for producer, rows in change["pending"]}


def _offsets_committed(
    view: GroupView, change: bodies.OffsetsCommitted | bodies.TransactionEnded
) -> None:
    """What was appended later stays, in whichever order the writes end."""
    offsets = view.offsets
    for topic, number, *values in change["offsets"]:
        partition, row = (topic, number), OffsetRow._make(values)
        held = offsets.get(partition)
        if held is None or held.position <= row.position or _is_logged(held, row):
            offsets[partition] = row


def _is_logged(held: OffsetRow, row: OffsetRow) -> bool:
    """Return whether a row is what the log has of one that was committed past it."""
    return held.position == UNLOGGED and held[:-1] == row[:-1]


def _transaction_pending(view: GroupView, change: bodies.TransactionPending) -> None:
    view.pending.setdefault(change["producer_id"], {}).update(read_rows(change["offsets"]))


def _transaction_completed(view: GroupView, change: bodies.TransactionEnded) -> None:
    view.pending.pop(change["producer_id"], None)
    _offsets_committed(view, change)


def _transaction_reverted(view: GroupView, change: bodies.TransactionReverted) -> None:
    partitions = ((topic, partition) for topic, partition in change["partitions"])
    revert(view.pending, change["producer_id"], partitions)


def _offsets_removed(view: GroupView, change: bodies.OffsetsRemoved) -> None:
    """What an open transaction commits goes with what is deleted, and outlives what expires."""
    pending = () if change["reason"] == "expired" else view.pending.values()
    for topic, partition in change["partitions"]:
        for rows in (view.offsets, *pending):
            rows.pop((topic, partition), None)


def without_removed(
    changes: Iterable[bodies.Change], removal: bodies.OffsetsRemoved
) -> list[bodies.Change]:
    """Return changes of a write that is on its way without the offsets that were removed behind it
    (GroupMetadata.removeOffsets, onOffsetCommitAppend).
    """
    gone = {(topic, partition) for topic, partition in removal["partitions"]}
    outlives = ChangeKind.TRANSACTION_PENDING if removal["reason"] == "expired" else None

    def rest(change: bodies.Change) -> bodies.Change:
        if "offsets" not in change or change["change"] == outlives:
            return change
        left = change.copy()
        left["offsets"] = [row for row in change["offsets"] if (row[0], row[1]) not in gone]
        return left

    return [rest(change) for change in changes]


CHANGES: Mapping[ChangeKind, Callable[[GroupView, Any], None]] = {
    ChangeKind.GROUP_CREATED: _created,
    ChangeKind.MEMBER_ADDED: _member_added,
    ChangeKind.MEMBER_REPLACED: _member_replaced,
    ChangeKind.MEMBER_UPDATED: _member_updated,
    ChangeKind.MEMBER_REMOVED: _member_removed,
    ChangeKind.REBALANCE_STARTED: _rebalance_started,
    ChangeKind.GENERATION_STARTED: _generation_started,
    ChangeKind.ASSIGNMENT_DISTRIBUTED: _assignment_distributed,
    ChangeKind.GROUP_EMPTIED: _group_emptied,
    ChangeKind.GROUP_LOADED: _group_loaded,
    ChangeKind.OFFSETS_COMMITTED: _offsets_committed,
    ChangeKind.TRANSACTION_PENDING: _transaction_pending,
    ChangeKind.TRANSACTION_COMPLETED: _transaction_completed,
    ChangeKind.TRANSACTION_REVERTED: _transaction_reverted,
    ChangeKind.OFFSETS_REMOVED: _offsets_removed,
}
"""By kind; GROUP_REMOVED drops the group itself."""

CREATES = frozenset({ChangeKind.GROUP_CREATED, ChangeKind.GROUP_LOADED})
"""Changes that a group begins with."""
