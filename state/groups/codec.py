"""A group's bytes: members and everything that changes with them in one value, offsets in another.

docs/state-format.md is the specification.
"""

from __future__ import annotations

from typing import Any

import orjson

from state.groups.group import Group, JoinTimer
from state.groups.member import Member
from state.groups.offset_store import OffsetStore
from state.groups.states import GroupState

_STATES = tuple(GroupState)
_NUMBERS = {state: number for number, state in enumerate(_STATES)}


def encode_members(group: Group) -> bytes:
    """Return everything of a group but its name, partition and offsets."""
    members = [
        [
            one.id,
            one.instance,
            one.client,
            one.host,
            one.session_timeout_ms,
            one.rebalance_timeout_ms,
            one.protocols,
            one.assignment,
            one.join_request,
            one.sync_request,
            one.deadline_ms,
            one.is_new,
            one.pending_sync,
        ]
        for one in group.members.values()
    ]
    return orjson.dumps(
        [
            _NUMBERS[group.state],
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader,
            group.state_since_ms,
            members,
            [*group.pending.items()],
            None if group.join_timer is None else [*group.join_timer],
            group.sync_deadline_ms,
            group.new_member_added,
            group.subscribed,
            group.assigned_by,
        ]
    )


def decode_group(name: str, partition: int, members: bytes, offsets: bytes) -> Group:
    """Return a group out of its two values."""
    (
        state,
        generation,
        protocol_type,
        protocol,
        leader,
        state_since_ms,
        rows,
        pending,
        join_timer,
        sync_deadline_ms,
        new_member_added,
        subscribed,
        assigned_by,
    ) = orjson.loads(members)
    return Group(
        name=name,
        partition=partition,
        state=_STATES[state],
        generation=generation,
        protocol_type=protocol_type,
        protocol=protocol,
        leader=leader,
        state_since_ms=state_since_ms,
        members={row[0]: _member(row) for row in rows},
        pending=dict(pending),
        join_timer=None if join_timer is None else JoinTimer(*join_timer),
        sync_deadline_ms=sync_deadline_ms,
        new_member_added=new_member_added,
        subscribed=None if subscribed is None else tuple(subscribed),
        assigned_by=None if assigned_by is None else tuple(assigned_by),
        store=OffsetStore(offsets),
    )


def _member(row: list[Any]) -> Member:
    row[6] = tuple([(name, metadata) for name, metadata in row[6]])
    return Member(*row)
