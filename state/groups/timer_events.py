"""Events that let the timers of whole buckets fire: a tick, and a new configuration."""

from __future__ import annotations

from state.decisions import Decision, DecisionKind
from state.events import Event
from state.groups.buckets import bucket_of_key
from state.groups.group import Group
from state.groups.group_turn import arm, with_groups
from state.groups.payloads.ownership import GroupCoordinatorConfigured, GroupTimerDue
from state.groups.slot import GroupSlot
from state.groups.turn import Turn


def on_group_timer_due(slot: GroupSlot, event: Event, due: GroupTimerDue) -> list[Decision]:
    """Let the timers of a bucket fire, and arm its timer once, for the next deadline."""
    number = bucket_of_key(event.key)
    bucket = slot.bucket(number)
    found = with_groups(slot, event, bucket.due(event.time_ms), _only_timers)
    bucket.armed_ms = None
    return [
        *(one for one in found if one.kind is not DecisionKind.ARM_TIMER),
        *arm(bucket, event.offset, number, bucket.first()),
    ]


def on_group_coordinator_configured(
    slot: GroupSlot, event: Event, changed: GroupCoordinatorConfigured
) -> list[Decision]:
    """Take configuration, after all timers that were due under the old one."""
    found = []
    for number in slot.numbers():
        due = slot.bucket(number).due(event.time_ms)
        found.extend(with_groups(slot, event, due, _only_timers))
    slot.config = slot.config.configured(changed.config)
    return found


def _only_timers(turn: Turn, group: Group) -> None:
    """Do nothing: the timers that are due fire before."""
