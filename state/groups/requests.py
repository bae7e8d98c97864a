"""Requests of members and administrators, with a group or without one."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from state.decisions import Decision
from state.events import Event
from state.groups import presence, replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.group_turn import with_name
from state.groups.join import join
from state.groups.offsets import Commit, commit, delete_group, delete_offsets
from state.groups.payloads.offsets import (
    OffsetCommitRequested,
    OffsetDeleteRequested,
    TxnOffsetCommitRequested,
)
from state.groups.payloads.requests import (
    DeleteGroupRequested,
    JoinGroupRequested,
    LeaveGroupRequested,
    SyncGroupRequested,
)
from state.groups.slot import GroupSlot
from state.groups.sync import sync
from state.groups.tables import CoordinatorPhase, status_error
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError

_ToExisting: TypeAlias = (
    SyncGroupRequested | LeaveGroupRequested | OffsetDeleteRequested | DeleteGroupRequested
)
"""What is asked of a group that there is."""

Request: TypeAlias = JoinGroupRequested | Commit | _ToExisting
"""Every GroupRequest."""


def on_group_request(slot: GroupSlot, event: Event, request: Request) -> list[Decision]:
    """Take a request about one group, which may not exist."""
    phase = slot.phase(request.partition)
    return with_name(
        slot,
        event,
        request.group,
        request.partition,
        lambda turn, group: _handle(turn, group, request, phase),
    )


def _handle(
    turn: Turn, group: Group | None, request: Request, phase: CoordinatorPhase
) -> Group | None:
    """Answer or refuse a request, or let it wait; return the group if there is one afterwards.

    phase: what we are for the group's partition.
    """
    error = status_error(request.api, request.group, phase)
    if error is not None:
        refuse(turn, request, error)
        return group
    match request:
        case JoinGroupRequested():
            return _join(turn, group, request)
        case OffsetCommitRequested() | TxnOffsetCommitRequested():
            return _commit(turn, group, request)
        case (
            SyncGroupRequested()
            | LeaveGroupRequested()
            | OffsetDeleteRequested()
            | DeleteGroupRequested()
        ):
            return _of_existing(turn, group, request)
        case _:
            assert_never(request)


def _join(turn: Turn, group: Group | None, request: JoinGroupRequested) -> Group | None:
    config = turn.config
    bounds = (config.min_session_timeout_ms, config.max_session_timeout_ms)
    if not bounds[0] <= request.session_timeout_ms <= bounds[1]:
        refuse(turn, request, ProtocolError.INVALID_SESSION_TIMEOUT)
        return group
    if group is None:
        if request.member:
            refuse(turn, request, ProtocolError.UNKNOWN_MEMBER_ID)
            return None
        group = create(turn, request.group, request.partition)
    join(turn, group, request)
    return group


def _commit(turn: Turn, group: Group | None, request: Commit) -> Group | None:
    transactional = isinstance(request, TxnOffsetCommitRequested)
    if group is None:
        if request.generation >= 0 and not transactional:
            refuse(turn, request, ProtocolError.ILLEGAL_GENERATION)
            return None
        group = create(turn, request.group, request.partition)
    commit(turn, group, request)
    return group


def create(turn: Turn, name: str, partition: int) -> Group:
    """Return a new group, noted as such."""
    turn.change({"change": ChangeKind.GROUP_CREATED})
    return Group(name, partition, state_since_ms=turn.now_ms)


def _of_existing(turn: Turn, group: Group | None, request: _ToExisting) -> Group | None:
    if group is None:
        _refuse_without_group(turn, request)
        return None
    gone = False
    match request:
        case SyncGroupRequested():
            sync(turn, group, request)
        case LeaveGroupRequested():
            presence.leave(turn, group, request)
        case OffsetDeleteRequested():
            gone = delete_offsets(turn, group, request)
        case DeleteGroupRequested():
            gone = delete_group(turn, group, request)
        case _:
            assert_never(request)
    return None if gone else group


def _refuse_without_group(turn: Turn, request: _ToExisting) -> None:
    match request:
        case SyncGroupRequested():
            refuse(turn, request, ProtocolError.UNKNOWN_MEMBER_ID)
        case LeaveGroupRequested():
            unknown = [ProtocolError.UNKNOWN_MEMBER_ID] * len(request.members)
            presence.answer_leave(turn, request, unknown)
        case OffsetDeleteRequested() | DeleteGroupRequested():
            refuse(turn, request, ProtocolError.GROUP_ID_NOT_FOUND)
        case _:
            assert_never(request)


def refuse(turn: Turn, request: Request, error: ProtocolError) -> None:
    """Answer a request with an error as a whole."""
    match request:
        case JoinGroupRequested():
            replies.refuse_join(turn, request.request_id, error, request.member)
        case SyncGroupRequested():
            replies.refuse_sync(turn, request.request_id, error)
        case LeaveGroupRequested():
            turn.reply(request.request_id, request.api, error, members=[])
        case DeleteGroupRequested():
            turn.reply(request.request_id, request.api, error)
        case OffsetCommitRequested() | TxnOffsetCommitRequested() | OffsetDeleteRequested():
            turn.reply(request.request_id, request.api, error, partitions=[])
        case _:
            assert_never(request)
