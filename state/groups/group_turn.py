"""One group folded with an event: due timers fire, the event is applied, decisions come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from state.bodies import ArmTimer, ChangeGroup
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.groups.bucket import Bucket
from state.groups.buckets import group_bucket, timer_name
from state.groups.group import Group
from state.groups.member import NEVER
from state.groups.slot import GroupSlot
from state.groups.timers import NOTHING, Known, fire
from state.groups.turn import Turn

Gone: TypeAlias = bool
"""Whether a group is to be forgotten."""

ToGroup: TypeAlias = Callable[[Turn, Group], Gone | None]
"""Applies an event to a group; one that returns None keeps the group."""


ToName: TypeAlias = Callable[[Turn, Group | None], Group | None]
"""Applies an event to the group of a name, None where there is none; returns the one that there is
then.
"""


def with_group(
    slot: GroupSlot, event: Event, name: str, act: ToGroup, known: Known = NOTHING
) -> list[Decision]:
    """Apply an event to a group, if it exists, and return the decisions.

    Timers that are due fire first. known: what the event says of the time before it.
    """
    bucket = slot.bucket(group_bucket(name))
    group = bucket.get(name)
    if group is None:
        return []
    turn = _begin(slot, event, group, known)
    return finish(bucket, turn, group, gone=bool(act(turn, group)))


def with_name(
    slot: GroupSlot, event: Event, name: str, partition: int, act: ToName
) -> list[Decision]:
    """Apply an event to the group of a name, which may not exist, and return the decisions.

    Timers that are due fire first. partition: the group's of `__consumer_offsets`.
    """
    bucket = slot.bucket(group_bucket(name))
    group = bucket.get(name)
    turn = _begin(slot, event, group)
    kept = act(turn, group)
    if kept is not None:
        return finish(bucket, turn, kept, gone=False)
    return finish(bucket, turn, group or Group(name, partition), gone=True)


def _begin(slot: GroupSlot, event: Event, group: Group | None, known: Known = NOTHING) -> Turn:
    """Return the turn of an event about a group, with what its due timers did."""
    turn = Turn(event.offset, event.time_ms, slot.config)
    if group is not None:
        fire(turn, group, event.time_ms, known)
        turn.now_ms = event.time_ms
    return turn


def with_groups(
    slot: GroupSlot, event: Event, names: Iterable[str], act: ToGroup
) -> list[Decision]:
    """Apply an event to groups, one after the other, and return the decisions."""
    return [decision for name in names for decision in with_group(slot, event, name, act)]


def finish(bucket: Bucket, turn: Turn, group: Group, *, gone: Gone) -> list[Decision]:
    """Let timers fire that are due at once, and return what was decided about a group."""
    if gone:
        if group.name in bucket.entries:
            bucket.remove(group.name)
        return _described(turn, group)
    fire(turn, group, turn.now_ms)
    if group.name not in bucket.entries:
        bucket.add(group)
    found = _described(turn, group)
    bucket.settle(group.name)
    return [*found, *arm(bucket, turn.offset, group_bucket(group.name), group.name)]


def _described(turn: Turn, group: Group) -> list[Decision]:
    """Return the decision about a group, none when nothing was noted."""
    steps = turn.steps()
    if not steps:
        return []
    body: ChangeGroup = {"group": group.name, "partition": group.partition, "steps": steps}
    return [json_decision(turn.offset, DecisionKind.CHANGE_GROUP, body)]


def arm(bucket: Bucket, offset: int, number: int, name: str | None) -> list[Decision]:
    """Arm the bucket's timer for a group, unless it rings early enough."""
    if name is None:
        return []
    latest_ms = bucket.entries[name].latest_ms
    if latest_ms >= (NEVER if bucket.armed_ms is None else bucket.armed_ms):
        return []
    bucket.armed_ms = latest_ms
    group = bucket.get(name)
    assert group is not None
    timer: ArmTimer = {
        "timer": timer_name(number),
        "deadline_ms": latest_ms - group.slack_ms,
        "slack_ms": group.slack_ms,
    }
    return [json_decision(offset, DecisionKind.ARM_TIMER, timer)]
