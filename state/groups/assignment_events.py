"""Events about assignments that members were given without a decision."""

from __future__ import annotations

from state.decisions import Decision
from state.events import Event
from state.groups.group_turn import with_group
from state.groups.payloads.requests import AssignmentAppended
from state.groups.slot import GroupSlot
from state.groups.sync import take_assignment
from state.groups.tables import CoordinatorPhase


def on_assignment_appended(
    slot: GroupSlot, event: Event, appended: AssignmentAppended
) -> list[Decision]:
    """Take what a leader assigned, if its generation still waits for it."""
    if slot.phase(appended.partition) is not CoordinatorPhase.OWNED:
        return []
    return with_group(
        slot, event, appended.group, lambda turn, group: take_assignment(turn, group, appended)
    )
