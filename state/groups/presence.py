"""Heartbeat and LeaveGroup: members that stay, and members that leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from state.decisions import Decision
from state.events import Event
from state.groups.group import Group
from state.groups.group_turn import with_group
from state.groups.member import Member
from state.groups.membership import MembersView, member_error, sender_error, touch
from state.groups.payloads.requests import (
    Heartbeat,
    HeartbeatsReceived,
    LeaveGroupRequested,
    LeavingMember,
)
from state.groups.rebalance import remove_member, remove_pending
from state.groups.slot import GroupSlot
from state.groups.states import GroupState
from state.groups.tables import HEARTBEAT, LEAVE
from state.groups.timers import Known
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError

MEMBERS_SINCE = 3
"""Version of LeaveGroup from which on it has a list of members."""

ALIVE = frozenset({ProtocolError.NONE, ProtocolError.REBALANCE_IN_PROGRESS})
"""Answers to a Heartbeat that comes from a member of the present generation."""


class GenerationView(MembersView, Protocol):
    """What a heartbeat is answered from: a group or its image."""

    @property
    def state(self) -> GroupState:
        """The group's state."""

    @property
    def generation(self) -> int:
        """The group's generation."""


def heartbeat_answer(group: GenerationView, heard: Heartbeat) -> ProtocolError:
    """Return what the heartbeat of a member is answered with."""
    cell = HEARTBEAT[group.state]
    assert isinstance(cell, ProtocolError)
    if group.state is GroupState.DEAD:
        return cell
    error = sender_error(group, heard.member, heard.instance)
    if error is None and heard.generation != group.generation:
        error = ProtocolError.ILLEGAL_GENERATION
    return cell if error is None else error


def on_heartbeats_received(
    slot: GroupSlot, event: Event, received: HeartbeatsReceived
) -> list[Decision]:
    """Extend the sessions of members that were heard from, and note SyncGroups that came."""
    synced = {one.group: one for one in received.synced}
    of_group: dict[str, list[Heartbeat]] = {one: [] for one in synced}
    for one in received.heartbeats:
        of_group.setdefault(one.group, []).append(one)

    def act(turn: Turn, group: Group) -> None:
        for one in of_group[group.name]:
            _heartbeat(turn, group, one)

    found: list[Decision] = []
    for name, heartbeats in of_group.items():
        heard_ms = {
            one.member: event.time_ms - one.silent_ms
            for one in heartbeats
            if one.silent_ms is not None
        }
        found += with_group(slot, event, name, act, Known(heard_ms, synced.get(name)))
    return found


def _heartbeat(turn: Turn, group: Group, heard: Heartbeat) -> None:
    """Extend a member's session; the heartbeat was answered when it came."""
    answer = heartbeat_answer(group, heard)
    if heard.silent_ms is None:
        if answer in ALIVE:
            touch(turn, group, group.members[heard.member])
    elif answer in ALIVE or answer is ProtocolError.ILLEGAL_GENERATION:
        heard_ms = turn.now_ms - heard.silent_ms
        _extend_session(group, group.members[heard.member], heard_ms, longer=answer not in ALIVE)


def _extend_session(group: Group, member: Member, heard_ms: int, *, longer: bool) -> None:
    """Let a member's session run from its last-heard time.

    For a member blocked in JoinGroup or SyncGroup the last-heard time is ignored; its session
    starts when it is answered. longer: the heartbeat is of an earlier generation, so the session
    that began since is not cut short.
    """
    if member.is_new or member.waits:
        return
    deadline_ms = heard_ms + member.session_timeout_ms
    if longer and member.deadline_ms is not None:
        deadline_ms = max(deadline_ms, member.deadline_ms)
    group.set_deadline(member, deadline_ms)


def leave(turn: Turn, group: Group, request: LeaveGroupRequested) -> None:
    """Take one LeaveGroup."""
    cell = LEAVE[group.state]
    if isinstance(cell, ProtocolError):
        turn.reply(request.request_id, request.api, cell, members=[])
        return
    answer_leave(turn, request, [_leave_one(turn, group, one) for one in request.members])


def answer_leave(turn: Turn, request: LeaveGroupRequested, errors: Sequence[ProtocolError]) -> None:
    """Answer with an error for each member; below version 3 the only one's is the request's."""
    old = request.version < MEMBERS_SINCE
    rows = [
        [one.member, one.instance, error]
        for one, error in zip(request.members, errors, strict=True)
    ]
    error = errors[0] if old and errors else ProtocolError.NONE
    turn.reply(request.request_id, request.api, error, members=rows)


def _leave_one(turn: Turn, group: Group, leaving: LeavingMember) -> ProtocolError:
    name = leaving.member
    if not name:
        # An administrator removes a static member by its instance.
        name = group.instances.get(leaving.instance or "", "")
        if not name:
            return ProtocolError.UNKNOWN_MEMBER_ID
    elif name in group.pending:
        remove_pending(turn, group, name)
        return ProtocolError.NONE
    else:
        error = member_error(group, name, leaving.instance)
        if error is not None:
            return error
    remove_member(turn, group, group.members[name], "left", leaving.reason)
    return ProtocolError.NONE
