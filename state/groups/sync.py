"""SyncGroup: taking the leader's assignments, and handing them out."""

from __future__ import annotations

from typing import Protocol

from state.groups import records, replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.membership import await_sync, member_error, touch
from state.groups.payloads.requests import AssignmentAppended, SyncGroupRequested
from state.groups.presence import GenerationView
from state.groups.rebalance import move, sync_received
from state.groups.states import GroupState
from state.groups.tables import SYNC, Act
from state.groups.turn import Step, Turn
from state.protocol_errors import ProtocolError


class SyncView(GenerationView, replies.ProtocolView, Protocol):
    """What a SyncGroup is checked against: a group or its image."""


def sync(turn: Turn, group: Group, request: SyncGroupRequested) -> None:
    """Take one SyncGroup."""
    cell = SYNC[group.state]
    error = sync_error(group, request)
    if error is not None:
        replies.refuse_sync(turn, request.request_id, error)
        return
    member = group.members[request.member]
    if cell is Act.GIVE_ASSIGNMENT:
        sync_received(group, member)
        replies.give_assignment(turn, group, member, request.request_id)
        touch(turn, group, member)
        return
    await_sync(turn, member, request.request_id)
    sync_received(group, member)
    if group.leader == member.id:
        _distribute(turn, group, request.assignments)


def sync_error(group: SyncView, request: SyncGroupRequested) -> ProtocolError | None:
    """Return why a SyncGroup is refused, None for one that waits or is given an assignment."""
    error = None if group.state is GroupState.DEAD else _sender_error(group, request)
    cell = SYNC[group.state]
    return cell if error is None and isinstance(cell, ProtocolError) else error


def _sender_error(group: SyncView, request: SyncGroupRequested) -> ProtocolError | None:
    error = member_error(group, request.member, request.instance)
    if error is not None:
        return error
    if request.generation != group.generation:
        return ProtocolError.ILLEGAL_GENERATION
    for said, held in (
        (request.protocol_type, group.protocol_type),
        (request.protocol, group.protocol),
    ):
        if said is not None and said != held:
            return ProtocolError.INCONSISTENT_GROUP_PROTOCOL
    return None


def take_assignment(turn: Turn, group: Group, appended: AssignmentAppended) -> None:
    """Take an assignment that the topic has and members were told; a group that went on meanwhile
    does not go back.
    """
    if group.state is not GroupState.COMPLETING or appended.generation != group.generation:
        return
    assert group.leader is not None
    sync_received(group, group.members[group.leader])
    _assign(group, appended.assignments)
    group.assigned_by = None
    _hand_out(turn, group, turn)


def _distribute(turn: Turn, group: Group, assignments: dict[str, str]) -> None:
    """Persist the assignments, then hand them to those who wait."""
    _assign(group, assignments)
    group.assigned_by = turn.next_write
    step = turn.write(
        [records.group_metadata(group, turn.now_ms)], undo={"generation": group.generation}
    )
    _hand_out(turn, group, step)


def _assign(group: Group, assignments: dict[str, str]) -> None:
    """Give each member its assignment; who was not assigned anything gets an empty one."""
    for member in group.members.values():
        member.assignment = assignments.get(member.id, "")


def _hand_out(turn: Turn, group: Group, step: Step | Turn) -> None:
    """Begin the stable part of a generation, and answer those who wait for their assignments."""
    move(turn, group, GroupState.STABLE)
    step.change(
        {
            "change": ChangeKind.ASSIGNMENT_DISTRIBUTED,
            "generation": group.generation,
            "assignments": [(one.id, one.assignment) for one in group.members.values()],
        }
    )
    for member in group.members.values():
        if member.sync_request is not None:
            replies.give_assignment(step, group, member, member.sync_request)
            member.sync_request = None
            touch(turn, group, member)
