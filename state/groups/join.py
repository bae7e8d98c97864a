"""JoinGroup: new members, members that come back, and static members under a new id."""

from __future__ import annotations

from typing import assert_never

from state.bodies import UndoNewId
from state.groups import records, replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.member import Member
from state.groups.membership import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    admits,
    await_generation,
    await_join,
    forget,
    member_error,
    note_replaced,
    replace_instance,
    touch,
)
from state.groups.payloads.requests import JoinGroupRequested
from state.groups.rebalance import maybe_complete_join, maybe_prepare, prepare
from state.groups.states import GroupState
from state.groups.tables import JOIN_KNOWN, JOIN_NEW, Act
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError

MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9


def join(turn: Turn, group: Group, request: JoinGroupRequested) -> None:
    """Take one JoinGroup; whoever joins last may end the joining."""
    if not admits(group, request.member, turn.config.max_size):
        member = group.members.get(request.member)
        if member is not None:
            forget(turn, group, member, "group_full")
        group.pending.pop(request.member, None)
        replies.refuse_join(turn, request.request_id, ProtocolError.GROUP_MAX_SIZE_REACHED)
    elif request.member:
        _join_known(turn, group, request)
    else:
        _join_new(turn, group, request)
    maybe_complete_join(turn, group)


def _join_new(turn: Turn, group: Group, request: JoinGroupRequested) -> None:
    cell = JOIN_NEW[group.state]
    if isinstance(cell, ProtocolError):
        replies.refuse_join(turn, request.request_id, cell)
    elif not group.supports(request.protocol_type, request.protocols):
        replies.refuse_join(turn, request.request_id, ProtocolError.INCONSISTENT_GROUP_PROTOCOL)
    elif request.instance is None:
        if request.version >= MEMBER_ID_REQUIRED_SINCE:
            _require_member_id(turn, group, request)
        else:
            _add(turn, group, request, request.new_member)
    elif request.instance in group.instances:
        _return_of_instance(turn, group, request, request.instance)
    else:
        _add(turn, group, request, request.new_member)


def _require_member_id(turn: Turn, group: Group, request: JoinGroupRequested) -> None:
    """Give out a member id to come back with: clients that give up leave no member behind."""
    group.give_out(request.new_member, turn.now_ms + request.session_timeout_ms)
    replies.refuse_join(
        turn, request.request_id, ProtocolError.MEMBER_ID_REQUIRED, request.new_member
    )


def _add(turn: Turn, group: Group, request: JoinGroupRequested, member_id: str) -> None:
    if group.state is GroupState.PREPARING and group.generation == 0:
        group.new_member_added = True
    member = Member(
        member_id,
        request.instance,
        request.client,
        request.host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocols,
        join_request=request.request_id,
        deadline_ms=turn.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS,
        is_new=True,
    )
    group.add(member, request.protocol_type)
    turn.change(
        {
            "change": ChangeKind.MEMBER_ADDED,
            "member": member_id,
            "instance": member.instance,
            "client": member.client,
            "host": member.host,
            "session_timeout_ms": member.session_timeout_ms,
            "rebalance_timeout_ms": member.rebalance_timeout_ms,
            "protocol_type": group.protocol_type,
        }
    )
    maybe_prepare(turn, group, f"member {member_id} joined: {request.reason}")


def _join_known(turn: Turn, group: Group, request: JoinGroupRequested) -> None:
    cell = JOIN_KNOWN[group.state]
    if group.state is GroupState.DEAD and isinstance(cell, ProtocolError):
        replies.refuse_join(turn, request.request_id, cell, request.member)
    elif not group.supports(request.protocol_type, request.protocols):
        error = ProtocolError.INCONSISTENT_GROUP_PROTOCOL
        replies.refuse_join(turn, request.request_id, error, request.member)
    elif request.member in group.pending and request.instance is None:
        _add(turn, group, request, request.member)
    elif error_found := member_error(group, request.member, request.instance):
        replies.refuse_join(turn, request.request_id, error_found, request.member)
    elif isinstance(cell, ProtocolError):
        replies.refuse_join(turn, request.request_id, cell, request.member)
    else:
        _rejoin_or_repeat(turn, group, request, cell)


def _rejoin_or_repeat(turn: Turn, group: Group, request: JoinGroupRequested, act: Act) -> None:
    """Rebalance for a member that asks for it, or answer with the present generation again.

    A leader that joins a stable group asks for new assignments; others ask by other metadata.
    """
    member = group.members[request.member]
    leads = group.leader == member.id
    unchanged = member.protocols == request.protocols
    if act is Act.REPEAT_UNLESS_LEADER_OR_CHANGED:
        repeats = unchanged and not leads
    else:
        repeats = unchanged and act is Act.REPEAT_UNLESS_CHANGED
    if not repeats:
        _update(turn, group, member, request)
        turn.change(
            {
                "change": ChangeKind.MEMBER_UPDATED,
                "member": member.id,
                "session_timeout_ms": member.session_timeout_ms,
                "rebalance_timeout_ms": member.rebalance_timeout_ms,
            }
        )
        maybe_prepare(turn, group, f"member {member.id} rejoined: {request.reason}")
        return
    everyone = leads and act is Act.REPEAT_UNLESS_CHANGED
    fields = replies.generation_fields(
        group, member, leader=group.leader, everyone=everyone, skip_assignment=False
    )
    turn.reply(request.request_id, request.api, ProtocolError.NONE, **fields)


def _update(turn: Turn, group: Group, member: Member, request: JoinGroupRequested) -> None:
    """Take over what a member says of itself, and let it wait."""
    group.offer(member, request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    await_join(turn, group, member, request.request_id)


def _return_of_instance(
    turn: Turn, group: Group, request: JoinGroupRequested, instance: str
) -> None:
    """Let a static member go on under a new id, without a rebalance where that is possible."""
    member = group.members[group.instances[instance]]
    old_id = member.id
    undo: UndoNewId = {
        "instance": instance,
        "member": request.new_member,
        "old_member": old_id,
        "old_leader": group.leader,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
    }
    replace_instance(turn, group, instance, request.new_member)
    if member.is_new:
        await_generation(turn, group, member)
    else:
        touch(turn, group, member)
    _update(turn, group, member, request)
    note_replaced(turn, group, member, old_id)
    match group.state:
        case GroupState.STABLE:
            if group.vote() == group.protocol:
                _keep_generation(turn, group, request, undo)
                return
            maybe_prepare(turn, group, f"protocol changes with {instance}: {request.reason}")
        case GroupState.COMPLETING:
            # The leader may be assigning to the old id, which nobody answers to any more.
            prepare(turn, group, f"static member {instance} came back: {request.reason}")
        case GroupState.PREPARING:
            pass
        case GroupState.EMPTY | GroupState.DEAD:
            raise AssertionError(f"{group.name} is {group.state} and has a member")
        case _:
            assert_never(group.state)


def _keep_generation(
    turn: Turn, group: Group, request: JoinGroupRequested, undo: UndoNewId
) -> None:
    """Persist the new id and answer with the present generation.

    From version 9 on a leader is told that it leads and has nothing to assign (KIP-814). Before, it
    is given its old id as leader's, so that it assigns nothing: a stable group would not take it.
    """
    member = group.members[request.new_member]
    skips = request.version >= SKIP_ASSIGNMENT_SINCE
    leads = skips and group.leader == member.id
    group.let_join(member, None)
    step = turn.write([records.group_metadata(group, turn.now_ms)], undo=undo)
    fields = replies.generation_fields(
        group,
        member,
        leader=group.leader if skips else undo["old_leader"],
        everyone=leads,
        skip_assignment=leads,
    )
    step.reply(request.request_id, request.api, ProtocolError.NONE, **fields)
