"""A stable group that waits for a member that left to come back, as a new one."""

from __future__ import annotations

from typing import Any

from state.groups.buckets import group_bucket
from state.groups.group import Group
from state.groups.image_changes import CHANGES, GroupView
from state.groups.states import GroupState
from state.protocol_errors import ProtocolError
from tests.unit.state.group_support import Coordinator

DELAY_MS = 8_000
BEGAN_MS = 6_000
"""When the first generation began: the initial delay, prolonged once, is over."""


def stable(members: int, delay_ms: int = DELAY_MS, **more: Any) -> tuple[Coordinator, list[str]]:
    """A coordinator with a stable group of its first generation, and the ids of its members."""
    coordinator = Coordinator(**{"group.leave.rebalance.delay.ms": delay_ms})
    joins = [
        coordinator.join("g", version=3, session_timeout_ms=60_000, **more) for _ in range(members)
    ]
    coordinator.tick(BEGAN_MS)
    ids = [coordinator.answer(one)["member"] for one in joins]
    for one in ids:
        coordinator.sync("g", one, 1, [[other, "AA=="] for other in ids] if one == ids[0] else [])
    assert coordinator.group("g").state is GroupState.STABLE
    return coordinator, ids


def leave(coordinator: Coordinator, *members: str) -> None:
    leaving = [{"member": one, "instance": None, "reason": ""} for one in members]
    coordinator.ask("leave_group_requested", "g", members=leaving)


def started(coordinator: Coordinator) -> list[str]:
    """Return why rebalances began since the first one."""
    return [
        change["reason"]
        for step in coordinator.steps
        for change in step["changes"]
        if change["change"] == "rebalance_started"
    ][1:]


def group_after(coordinator: Coordinator, waited_ms: int) -> Group:
    coordinator.tick(BEGAN_MS + waited_ms)
    return coordinator.group("g")


def test_the_others_go_on_until_the_delay_is_over() -> None:
    coordinator, (first, second, gone) = stable(3)
    leave(coordinator, gone)
    group = group_after(coordinator, DELAY_MS - 1)
    assert (group.state, group.generation, [*group.members]) == (
        GroupState.STABLE,
        1,
        [first, second],
    )
    commit = coordinator.commit("g", [["a", 0, 7, -1, ""]], second, 1)
    assert coordinator.answer(commit)["error"] == ProtocolError.NONE
    assert group_after(coordinator, DELAY_MS).state is GroupState.PREPARING
    assert started(coordinator) == ["nobody came within 8000 ms after members were removed"]


def test_whoever_joins_ends_the_wait_so_that_a_restart_costs_one_rebalance() -> None:
    coordinator, (first, second, gone) = stable(3)
    leave(coordinator, gone)
    coordinator.tick(BEGAN_MS + 2_000)
    back = coordinator.join("g", version=3)
    for one in (first, second):
        coordinator.join("g", one, version=3)
    group = coordinator.group("g")
    assert (group.state, group.generation, len(group.members)) == (GroupState.COMPLETING, 2, 3)
    assert group.join_timer is None
    assert coordinator.answer(back)["generation"] == 2
    assert len(started(coordinator)) == 1


def test_those_who_leave_later_do_not_prolong_the_wait() -> None:
    coordinator, (_, second, third) = stable(3)
    leave(coordinator, third)
    coordinator.tick(BEGAN_MS + 5_000)
    leave(coordinator, second)
    assert group_after(coordinator, DELAY_MS - 1).state is GroupState.STABLE
    group_after(coordinator, DELAY_MS)
    assert len(started(coordinator)) == 1


def test_a_member_that_was_not_heard_from_is_waited_for_too() -> None:
    coordinator, (first, _) = stable(2)
    coordinator.now_ms = 60_000
    heard = [["g", first, None, 1]]
    coordinator.happen("heartbeats_received", str(group_bucket("g")), heartbeats=heard)
    coordinator.tick(66_000)
    group = coordinator.group("g")
    assert (group.state, [*group.members]) == (GroupState.STABLE, [first])
    coordinator.tick(66_000 + DELAY_MS)
    assert coordinator.group("g").state is GroupState.PREPARING


def test_the_last_member_is_not_waited_for() -> None:
    coordinator, ids = stable(2)
    leave(coordinator, *ids)
    assert coordinator.group("g").state is GroupState.EMPTY
    assert coordinator.group("g").join_timer is None


def test_a_group_whose_assignments_are_not_there_yet_rebalances_at_once() -> None:
    coordinator, (first, second) = stable(2)
    joins = [coordinator.join("g", one, version=3) for one in (first, second)]
    assert coordinator.answer(joins[0])["generation"] == 2
    leave(coordinator, second)
    assert coordinator.group("g").state is GroupState.PREPARING


def test_the_image_says_who_leads_once_the_leader_has_left() -> None:
    coordinator, (gone, second, _) = stable(3)
    leave(coordinator, gone)
    view = GroupView()
    for step in coordinator.steps:
        for change in step["changes"]:
            CHANGES[change["change"]](view, change)
    assert view.leader == coordinator.group("g").leader == second


def test_a_leader_that_asks_for_new_assignments_has_them_at_once() -> None:
    coordinator, (first, second, gone) = stable(3)
    leave(coordinator, gone)
    coordinator.join("g", first, version=3)
    assert coordinator.group("g").state is GroupState.PREPARING
    coordinator.join("g", second, version=3)
    assert group_after(coordinator, DELAY_MS).state is GroupState.COMPLETING
    assert len(started(coordinator)) == 1


def test_without_a_delay_a_group_rebalances_at_once() -> None:
    coordinator, (_, gone) = stable(2, delay_ms=0)
    leave(coordinator, gone)
    assert coordinator.group("g").state is GroupState.PREPARING
