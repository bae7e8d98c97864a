"""From one generation to the next: preparing, joining, assigning, and removing absent members."""

from __future__ import annotations

from state.groups import records, replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group, JoinTimer
from state.groups.member import Member
from state.groups.membership import forget, touch
from state.groups.payloads.requests import SyncsCame
from state.groups.states import GroupState, can_rebalance, is_legal
from state.groups.tables import GroupApi
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError

POSTPONED_AT_LEAST_MS = 100
"""How long at least an ended wait is repeated while no member has rejoined: a client may ask for a
rebalance timeout of 0.
"""


def move(turn: Turn, group: Group, target: GroupState) -> None:
    """Enter another state."""
    assert is_legal(group.state, target), f"{group.name}: {group.state} to {target}"
    group.state = target
    group.state_since_ms = turn.now_ms


def maybe_prepare(turn: Turn, group: Group, reason: str) -> None:
    """Begin a rebalance if the group is in a state to."""
    if can_rebalance(group.state):
        prepare(turn, group, reason)


def prepare(turn: Turn, group: Group, reason: str) -> None:
    """Begin a rebalance: members that await an assignment are told to rejoin.

    A group without a generation waits for more members, group.initial.rebalance.delay.ms at first.
    """
    if group.state is GroupState.COMPLETING:
        withdraw_assignment(turn, group, ProtocolError.REBALANCE_IN_PROGRESS)
    end_sync(group)
    timeout_ms = group.rebalance_timeout_ms
    if group.state is GroupState.EMPTY:
        delay_ms = turn.config.initial_rebalance_delay_ms
        group.join_timer = JoinTimer(turn.now_ms + delay_ms, max(timeout_ms - delay_ms, 0))
    else:
        group.join_timer = JoinTimer(turn.now_ms + timeout_ms, None)
    move(turn, group, GroupState.PREPARING)
    turn.change({"change": ChangeKind.REBALANCE_STARTED, "reason": reason})
    maybe_complete_join(turn, group)


def withdraw_assignment(turn: Turn, group: Group, error: ProtocolError) -> None:
    """Empty all assignments; members that await one get the error and another session timeout."""
    for member in group.members.values():
        member.assignment = ""
        if member.sync_request is not None:
            replies.refuse_sync(turn, member.sync_request, error)
            member.sync_request = None
            touch(turn, group, member)


def end_sync(group: Group) -> None:
    """Wait for no SyncGroup any more."""
    group.sync_deadline_ms = None
    for member in group.members.values():
        group.sync_came(member)


def sync_received(group: Group, member: Member) -> None:
    """Note that a member's SyncGroup has come; after the last one there is no deadline."""
    group.sync_came(member)
    if not group.unsynced:
        group.sync_deadline_ms = None


def syncs_came(group: Group, came: SyncsCame) -> None:
    """Note SyncGroups that were answered from the image, if they are of the present generation."""
    if came.generation == group.generation:
        for name in came.members:
            if (member := group.members.get(name)) is not None:
                sync_received(group, member)


def maybe_complete_join(turn: Turn, group: Group) -> None:
    """End the joining if nobody is missing; an initial delay is waited for to its end."""
    timer = group.join_timer
    if group.state is not GroupState.PREPARING or timer is None or timer.remaining_ms is not None:
        return
    if group.all_joined:
        complete_join(turn, group)


def join_timer_fired(turn: Turn, group: Group) -> None:
    """End the joining, or prolong an initial delay during which somebody joined; begin the
    rebalance that waited for whoever left.
    """
    timer = group.join_timer
    assert timer is not None
    if group.state is GroupState.STABLE:
        delay_ms = turn.config.leave_rebalance_delay_ms
        prepare(turn, group, f"nobody came within {delay_ms} ms after members were removed")
        return
    if group.new_member_added and timer.remaining_ms:
        group.new_member_added = False
        configured_ms = turn.config.initial_rebalance_delay_ms
        delay_ms = min(configured_ms, timer.remaining_ms)
        remaining_ms = max(timer.remaining_ms - configured_ms, 0)
        group.join_timer = JoinTimer(turn.now_ms + delay_ms, remaining_ms)
        return
    complete_join(turn, group)


def complete_join(turn: Turn, group: Group) -> None:
    """Begin the next generation with who has joined, and static members that still may.

    With none of them joined the wait begins again, until sessions end.
    """
    for member in [*group.members.values()]:
        if member.join_request is None and member.instance is None:
            forget(turn, group, member, "rebalance_timeout")
    if group.members and not _leader_has_joined(group):
        again_ms = max(group.rebalance_timeout_ms, POSTPONED_AT_LEAST_MS)
        group.join_timer = JoinTimer(turn.now_ms + again_ms, None)
        return
    group.join_timer = None
    group.new_member_added = False
    group.generation += 1
    if group.members:
        _start_generation(turn, group)
    else:
        _empty(turn, group)


def _leader_has_joined(group: Group) -> bool:
    """Return whether the leader waits; one that does not is followed by the first who does."""
    assert group.leader is not None
    if group.members[group.leader].join_request is not None:
        return True
    joined = next((one.id for one in group.members.values() if one.join_request is not None), None)
    if joined is not None:
        group.leader = joined
    return joined is not None


def _start_generation(turn: Turn, group: Group) -> None:
    group.protocol = group.vote()
    group.subscribed = group.topics()
    move(turn, group, GroupState.COMPLETING)
    turn.change(
        {
            "change": ChangeKind.GENERATION_STARTED,
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "leader": group.leader,
            "members": replies.metadata_rows(group),
        }
    )
    for member in group.members.values():
        if member.join_request is not None:
            _answer_join(turn, group, member)
        touch(turn, group, member)
        member.is_new = False
    group.await_syncs()
    group.sync_deadline_ms = turn.now_ms + group.rebalance_timeout_ms


def _answer_join(turn: Turn, group: Group, member: Member) -> None:
    assert member.join_request is not None
    fields = replies.generation_fields(
        group,
        member,
        leader=group.leader,
        everyone=member.id == group.leader,
        skip_assignment=False,
    )
    turn.reply(member.join_request, GroupApi.JOIN_GROUP, ProtocolError.NONE, **fields)
    group.let_join(member, None)


def _empty(turn: Turn, group: Group) -> None:
    group.protocol = None
    group.subscribed = group.topics()
    move(turn, group, GroupState.EMPTY)
    turn.change({"change": ChangeKind.GROUP_EMPTIED, "generation": group.generation})
    turn.write([records.group_metadata(group, turn.now_ms)], quiet=True)


def remove_member(turn: Turn, group: Group, member: Member, reason: str, because: str = "") -> None:
    """Take a member out and rebalance, or end a joining that waited for it alone.

    because: what its client says of it. A stable group may wait a while for it to come back, as a
    new member, whose joining begins the rebalance.
    """
    forget(turn, group, member, reason)
    delay_ms = turn.config.leave_rebalance_delay_ms
    if group.state is GroupState.STABLE and group.members and delay_ms:
        if group.join_timer is None:
            group.join_timer = JoinTimer(turn.now_ms + delay_ms, None)
    elif group.state is GroupState.PREPARING:
        maybe_complete_join(turn, group)
    elif group.state in (GroupState.STABLE, GroupState.COMPLETING):
        why = f"{reason}: {because}" if because else reason
        maybe_prepare(turn, group, f"member {member.id} removed: {why}")


def remove_pending(turn: Turn, group: Group, member: str) -> None:
    """Forget a member id that was given out."""
    del group.pending[member]
    maybe_complete_join(turn, group)


def sync_timer_fired(turn: Turn, group: Group) -> None:
    """Remove the members whose SyncGroup has not come, and rebalance."""
    late = [one for one in group.members.values() if one.pending_sync]
    group.sync_deadline_ms = None
    if not late or group.state not in (GroupState.COMPLETING, GroupState.STABLE):
        return
    for member in late:
        forget(turn, group, member, "sync_timeout")
    prepare(turn, group, f"{len(late)} members sent no SyncGroup")
