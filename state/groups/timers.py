"""A group's timers: which is due first, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from state.groups.group import Group
from state.groups.member import NEVER, Member
from state.groups.payloads.requests import SyncsCame
from state.groups.rebalance import (
    join_timer_fired,
    remove_member,
    remove_pending,
    sync_timer_fired,
    syncs_came,
)
from state.groups.states import GroupState
from state.groups.turn import Turn


@dataclass(frozen=True, slots=True)
class Known:
    """What an event says of the time before it, so that timers do not fire against it.

    heard_ms: by member id until when a member was never silent for a session. synced: whose
    SyncGroup came before the deadline.
    """

    heard_ms: Mapping[str, int] = field(default_factory=dict)
    synced: SyncsCame | None = None


NOTHING = Known()


def fire(turn: Turn, group: Group, until_ms: int, known: Known = NOTHING) -> None:
    """Let all timers fire that are due by then, in deadline order, each at its own deadline.

    Of those due together: member ids given out, sessions in order of joining, joining, syncing.
    """
    while (deadline_ms := group.next_deadline_ms) <= until_ms:
        turn.now_ms = deadline_ms
        _fire_first(turn, group, deadline_ms, known)
    if known.synced is not None:
        syncs_came(group, known.synced)


def disarm(group: Group) -> None:
    """Forget all timers."""
    group.pending.clear()
    group.join_timer = None
    group.sync_deadline_ms = None
    for member in group.members.values():
        group.set_deadline(member, None)


def _fire_first(turn: Turn, group: Group, deadline_ms: int, known: Known) -> None:
    assert deadline_ms < NEVER
    if group.state is GroupState.DEAD:
        disarm(group)
        return
    given = group.deadlines.first_given()
    member = group.deadlines.first_member()
    if given is not None and group.pending[given] == deadline_ms:
        remove_pending(turn, group, given)
    elif member is not None and member.deadline_ms == deadline_ms:
        _end_session(turn, group, member, deadline_ms, known.heard_ms)
    elif group.join_timer is not None and group.join_timer.deadline_ms == deadline_ms:
        join_timer_fired(turn, group)
    else:
        if known.synced is not None:
            syncs_came(group, known.synced)
        sync_timer_fired(turn, group)


def _end_session(
    turn: Turn, group: Group, member: Member, deadline_ms: int, heard_ms: Mapping[str, int]
) -> None:
    """Remove a member that neither was heard from nor waits. A new one may do either: it gets no
    more time for its first generation (MemberMetadata.hasSatisfiedHeartbeat).
    """
    later_ms = heard_ms.get(member.id, -NEVER) + member.session_timeout_ms
    if later_ms > deadline_ms and not member.is_new:
        group.set_deadline(member, later_ms)
        return
    group.set_deadline(member, None)
    if not member.waits:
        remove_member(turn, group, member, "session_expired")
