"""Who is a member: validation, admission, and how members come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from state.groups import replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.member import Member
from state.groups.states import GroupState
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first generation: until then it sends no heartbeats, and a
client that hung up cannot be told from one that waits.
"""


class MembersView(Protocol):
    """Who belongs to a group, as its machine or its image knows it."""

    @property
    def members(self) -> Mapping[str, object]:
        """Members by id."""

    @property
    def instances(self) -> Mapping[str, str]:
        """Members' ids by instance."""


def member_error(group: MembersView, member: str, instance: str | None) -> ProtocolError | None:
    """Return why a request that names a member and maybe its instance is not that member's.

    FENCED_INSTANCE_ID: the instance is another member by now.
    """
    if instance is not None:
        current = group.instances.get(instance)
        if current is None:
            return ProtocolError.UNKNOWN_MEMBER_ID
        if current != member:
            return ProtocolError.FENCED_INSTANCE_ID
    return None if member in group.members else ProtocolError.UNKNOWN_MEMBER_ID


def sender_error(group: MembersView, member: str, instance: str | None) -> ProtocolError | None:
    """Return what member_error does, for what a client sends as long as it consumes.

    Without a member id it comes from nobody: its client has given the membership up and will join;
    that another took its place would end it.
    """
    return member_error(group, member, instance) if member else ProtocolError.UNKNOWN_MEMBER_ID


def admits(group: Group, member: str, max_size: int) -> bool:
    """Return whether there is room for a member that joins.

    During a rebalance those that wait already are counted, so that of a group that is too large the
    last ones to rejoin are turned away.
    """
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        return True
    known = group.members.get(member)
    if group.state is GroupState.PREPARING:
        return (known is not None and known.join_request is not None) or group.joined < max_size
    return known is not None or len(group.members) < max_size


def touch(turn: Turn, group: Group, member: Member) -> None:
    """Give a member another session timeout from now on."""
    group.set_deadline(member, turn.now_ms + member.session_timeout_ms)


def await_generation(turn: Turn, group: Group, member: Member) -> None:
    """Give a new member that asks again as long for its first generation as one that comes."""
    group.set_deadline(member, turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)


def refuse_waiting(
    turn: Turn, group: Group, member: Member, error: ProtocolError, *, join_id: str = ""
) -> None:
    """Answer what a member waits for with an error; join_id: the id its JoinGroup is told to go on
    with.
    """
    if member.join_request is not None:
        replies.refuse_join(turn, member.join_request, error, join_id)
        group.let_join(member, None)
    if member.sync_request is not None:
        replies.refuse_sync(turn, member.sync_request, error)
        member.sync_request = None


def forget(turn: Turn, group: Group, member: Member, reason: str) -> None:
    """Take a member out of the group; what it waited for is answered."""
    refuse_waiting(turn, group, member, ProtocolError.UNKNOWN_MEMBER_ID)
    group.drop(member)
    turn.change(
        {
            "change": ChangeKind.MEMBER_REMOVED,
            "member": member.id,
            "instance": member.instance,
            "reason": reason,
        }
    )


def await_join(turn: Turn, group: Group, member: Member, request_id: str) -> None:
    """Let a member wait for the next generation with this request.

    One that waits already is answered, so that each request gets one answer. A client has given it
    up; the error is the one that every version of every client retries.
    """
    if member.join_request is not None and member.join_request != request_id:
        replies.refuse_join(
            turn,
            member.join_request,
            ProtocolError.COORDINATOR_LOAD_IN_PROGRESS,
            member.id,
        )
    group.let_join(member, request_id)


def await_sync(turn: Turn, member: Member, request_id: str) -> None:
    """Let a member wait for its assignment with this request; one that waits already is answered
    with the error that SyncGroup's clients retry.
    """
    if member.sync_request is not None and member.sync_request != request_id:
        replies.refuse_sync(turn, member.sync_request, ProtocolError.REBALANCE_IN_PROGRESS)
    member.sync_request = request_id


def replace_instance(turn: Turn, group: Group, instance: str, new_id: str) -> Member:
    """Let a static member go on under a new id; whoever waits under the old one is fenced."""
    member = group.members[group.instances[instance]]
    refuse_waiting(turn, group, member, ProtocolError.FENCED_INSTANCE_ID, join_id=member.id)
    group.rename(member, new_id)
    return member


def note_replaced(turn: Turn, group: Group, member: Member, old_id: str) -> None:
    """Note that a static member goes on under the id it has now.

    It is true at once, also where a record of it is yet to be appended: what is decided next is
    about the new id (GroupCoordinator.updateStaticMemberAndRebalance).
    """
    assert member.instance is not None
    turn.change(
        {
            "change": ChangeKind.MEMBER_REPLACED,
            "instance": member.instance,
            "member": old_id,
            "new_member": member.id,
            "session_timeout_ms": member.session_timeout_ms,
            "rebalance_timeout_ms": member.rebalance_timeout_ms,
            "metadata": member.metadata_if_any(group.protocol),
        }
    )
