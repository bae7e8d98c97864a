"""SyncGroups that are answered without a micro-batch.

The image is what members have been told, so a member that it has in a generation gets that
generation's assignment, once its leader has given it and brokers have it (`DirectAssignments`).
Until then the request waits here, the leader's too.
Which members have sent it is reported with the heartbeats, before the machine would remove them for
sending none (`Sessions`). docs/adr/0019 says why that is safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from state.event_kinds import EventKind
from state.groups.change_bodies import Change
from state.groups.change_kinds import ChangeKind
from state.groups.image_changes import GroupView
from state.groups.payloads.requests import sync_group_requested
from state.groups.replies import assignment_fields
from state.groups.states import GroupState
from state.groups.sync import sync_error
from state.protocol_errors import ProtocolError
from streaming.front.groups.direct_assignments import DirectAssignments
from streaming.front.groups.sessions import Sessions
from streaming.front.groups.view import CoordinatorView
from streaming.front.pending_requests import PendingReply, PendingRequests
from streaming.gateway.ports import ReplyBody

_GONE = ProtocolError.UNKNOWN_MEMBER_ID
_ENDS: Mapping[str, ProtocolError] = {
    ChangeKind.REBALANCE_STARTED: ProtocolError.REBALANCE_IN_PROGRESS,
    ChangeKind.GENERATION_STARTED: ProtocolError.REBALANCE_IN_PROGRESS,
    ChangeKind.GROUP_EMPTIED: _GONE,
    ChangeKind.GROUP_REMOVED: _GONE,
}
"""The error for all waiting requests of a group when there will be no assignment."""
_MEMBER_ENDS: Mapping[str, ProtocolError] = {
    ChangeKind.MEMBER_REMOVED: _GONE,
    ChangeKind.MEMBER_REPLACED: ProtocolError.FENCED_INSTANCE_ID,
}


class DirectSyncs:
    """Takes what it can of SyncGroup; lives on the front's event loop."""

    def __init__(
        self,
        pending: PendingRequests,
        sessions: Sessions,
        view: CoordinatorView,
        assignments: DirectAssignments,
    ) -> None:
        """pending: has the replies of waiting requests; assignments: takes what leaders assign."""
        self._pending = pending
        self._assignments = assignments
        self._sessions = sessions
        self._view = view
        self._waiting: dict[str, dict[str, str]] = {}

    def ask(self, payload: Mapping[str, Any], timeout_s: float) -> PendingReply | None:
        """Return what the reply to a SyncGroup will be; None leaves it to be decided.

        payload: as in sync_group_requested, without an id.
        """
        request = sync_group_requested({**payload, "request_id": ""})
        group = self._view.image.groups.get(request.group)
        if group is None:
            return None
        error, waits = sync_error(group, request), group.state is GroupState.COMPLETING
        if error is ProtocolError.REBALANCE_IN_PROGRESS:
            return _answered({"error": error})
        if error is not None or not self._sessions.sync_came(request.group, request.member):
            self._assignments.leave(request)
            return None
        leads = waits and group.leader == request.member
        if leads and not self._assignments.take(request):
            return None
        if waits:
            return self._wait(request.group, request.member, timeout_s)
        return _answered(_assignment(group, request.member))

    def decided(self, group: str, changes: Iterable[Change]) -> None:
        """Answer waiting requests of a group by its changes, once these are true."""
        for change in changes:
            kind, waiting = change["change"], self._waiting.get(group)
            if kind in _ENDS:
                self._assignments.ended(group)
            if waiting is None:
                continue
            if kind == ChangeKind.ASSIGNMENT_DISTRIBUTED:
                self._give_assignments(group, waiting)
            elif kind in _ENDS:
                self._refuse(self._waiting.pop(group), _ENDS[kind])
            elif kind in _MEMBER_ENDS and "member" in change and change["member"] in waiting:
                one = change["member"]
                self._refuse({one: waiting.pop(one)}, _MEMBER_ENDS[kind])

    def forget(self) -> None:
        """Drop all waiting requests; their callers have already been answered."""
        self._waiting.clear()
        self._assignments.forget()

    def _wait(self, group: str, member: str, timeout_s: float) -> PendingReply:
        """Let a member wait with this request; one that waits already is answered with the error
        that SyncGroup's clients retry.
        """
        request_id, reply = self._pending.expect(EventKind.SYNC_GROUP_REQUESTED, timeout_s)
        waiting = self._waiting.setdefault(group, {})
        before = waiting.pop(member, None)
        if before is not None:
            self._refuse({member: before}, ProtocolError.REBALANCE_IN_PROGRESS)
        waiting[member] = request_id
        return reply

    def _give_assignments(self, group: str, waiting: Mapping[str, str]) -> None:
        """Hand out what the image has; a group that went on meanwhile has none."""
        held = self._view.image.groups.get(group)
        if held is None or held.state is not GroupState.STABLE:
            return
        del self._waiting[group]
        self._pending.answer(
            {"request_id": request_id, **_assignment(held, member)}
            for member, request_id in waiting.items()
        )

    def _refuse(self, waiting: Mapping[str, str], error: ProtocolError) -> None:
        self._pending.answer(
            {"request_id": request_id, "error": error} for request_id in waiting.values()
        )


def _answered(body: ReplyBody) -> PendingReply:
    reply: PendingReply = asyncio.get_running_loop().create_future()
    reply.set_result(body)
    return reply


def _assignment(group: GroupView, name: str) -> dict[str, Any]:
    member = group.members.get(name)
    if member is None:
        return {"error": _GONE}
    return {"error": ProtocolError.NONE, **assignment_fields(group, member.assignment)}
