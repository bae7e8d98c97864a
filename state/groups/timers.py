"""A group's timers: which is due first, and what it does."""

from __future__ import annotations

from collections.abc import Mapping

from state.groups.group import NEVER, Group
from state.groups.rebalance import (
    join_timer_fired,
    remove_member,
    remove_pending,
    sync_timer_fired,
)
from state.groups.states import GroupState
from state.groups.turn import Turn

NOBODY: Mapping[str, int] = {}


def fire(turn: Turn, group: Group, until_ms: int, heard_ms: Mapping[str, int] = NOBODY) -> None:
    """Let all timers fire that are due by then, in deadline order, each at its own deadline.

    Of those due together: member ids given out, sessions in order of joining, joining, syncing.
    heard_ms: by member id until when a member was never silent for a session, so its session does
    not end before.
    """
    while (deadline_ms := group.next_deadline_ms) <= until_ms:
        turn.now_ms = deadline_ms
        _fire_first(turn, group, deadline_ms, heard_ms)


def disarm(group: Group) -> None:
    """Forget all timers."""
    group.pending.clear()
    group.join_timer = None
    group.sync_deadline_ms = None
    for member in group.members.values():
        member.deadline_ms = None


def _fire_first(turn: Turn, group: Group, deadline_ms: int, heard_ms: Mapping[str, int]) -> None:
    assert deadline_ms < NEVER
    if group.state is GroupState.DEAD:
        disarm(group)
        return
    for name, due_ms in group.pending.items():
        if due_ms == deadline_ms:
            remove_pending(turn, group, name)
            return
    for member in group.members.values():
        if member.deadline_ms == deadline_ms:
            later_ms = heard_ms.get(member.id, -NEVER) + member.session_timeout_ms
            member.deadline_ms = later_ms if later_ms > deadline_ms else None
            if member.deadline_ms is None and not member.waits:
                remove_member(turn, group, member, "session_expired")
            return
    if group.join_timer is not None and group.join_timer.deadline_ms == deadline_ms:
        join_timer_fired(turn, group)
    else:
        sync_timer_fired(turn, group)
