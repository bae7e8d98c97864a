"""Requests of members and administrators, with a group or without one."""

from __future__ import annotations

from state.decisions import Decision
from state.events import Event
from state.groups import presence, replies
from state.groups.buckets import group_bucket
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.group_turn import finish
from state.groups.join import join
from state.groups.offsets import api_of, commit, delete_group, delete_offsets
from state.groups.payloads.offsets import (
    OffsetCommitRequested,
    OffsetDeleteRequested,
    TxnOffsetCommitRequested,
)
from state.groups.payloads.requests import (
    DeleteGroupRequested,
    GroupRequest,
    JoinGroupRequested,
    LeaveGroupRequested,
    SyncGroupRequested,
)
from state.groups.slot import GroupSlot
from state.groups.sync import sync
from state.groups.tables import CoordinatorPhase, GroupApi, status_error
from state.groups.timers import fire
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError


def on_group_request(slot: GroupSlot, event: Event, request: GroupRequest) -> list[Decision]:
    """Take a request about one group, which may not exist."""
    bucket = slot.bucket(group_bucket(request.group))
    group = bucket.get(request.group)
    turn = Turn(event.offset, event.time_ms, slot.config)
    if group is not None:
        fire(turn, group, event.time_ms)
        turn.now_ms = event.time_ms
    kept = _handle(turn, group, request, slot.phase(request.partition))
    if kept is not None:
        return finish(bucket, turn, kept, gone=False)
    nobody = Group(request.group, request.partition)
    return finish(bucket, turn, group or nobody, gone=True)


def _handle(
    turn: Turn, group: Group | None, request: GroupRequest, phase: CoordinatorPhase
) -> Group | None:
    """Answer or refuse a request, or let it wait; return the group if there is one afterwards.

    phase: what we are for the group's partition.
    """
    error = status_error(api_of_request(request), request.group, phase)
    if error is not None:
        refuse(turn, request, error)
        return group
    match request:
        case JoinGroupRequested():
            return _join(turn, group, request)
        case OffsetCommitRequested() | TxnOffsetCommitRequested():
            return _commit(turn, group, request)
        case _:
            return _of_existing(turn, group, request)


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


def _commit(
    turn: Turn,
    group: Group | None,
    request: OffsetCommitRequested | TxnOffsetCommitRequested,
) -> Group | None:
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


def _of_existing(turn: Turn, group: Group | None, request: GroupRequest) -> Group | None:
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
            raise AssertionError(f"no request that needs a group: {request}")
    return None if gone else group


def _refuse_without_group(turn: Turn, request: GroupRequest) -> None:
    match request:
        case SyncGroupRequested():
            refuse(turn, request, ProtocolError.UNKNOWN_MEMBER_ID)
        case LeaveGroupRequested():
            unknown = [ProtocolError.UNKNOWN_MEMBER_ID] * len(request.members)
            presence.answer_leave(turn, request, unknown)
        case _:
            refuse(turn, request, ProtocolError.GROUP_ID_NOT_FOUND)


def api_of_request(request: GroupRequest) -> GroupApi:
    """Return which request it is."""
    match request:
        case JoinGroupRequested():
            return GroupApi.JOIN_GROUP
        case SyncGroupRequested():
            return GroupApi.SYNC_GROUP
        case LeaveGroupRequested():
            return GroupApi.LEAVE_GROUP
        case OffsetCommitRequested() | TxnOffsetCommitRequested():
            return api_of(request)
        case OffsetDeleteRequested():
            return GroupApi.OFFSET_DELETE
        case _:
            return GroupApi.DELETE_GROUP


def refuse(turn: Turn, request: GroupRequest, error: ProtocolError) -> None:
    """Answer a request with an error as a whole."""
    api = api_of_request(request)
    match api:
        case GroupApi.JOIN_GROUP:
            assert isinstance(request, JoinGroupRequested)
            replies.refuse_join(turn, request.request_id, error, request.member)
        case GroupApi.SYNC_GROUP:
            replies.refuse_sync(turn, request.request_id, error)
        case GroupApi.LEAVE_GROUP:
            turn.reply(request.request_id, api, error, members=[])
        case GroupApi.DELETE_GROUP:
            turn.reply(request.request_id, api, error)
        case _:
            turn.reply(request.request_id, api, error, partitions=[])
