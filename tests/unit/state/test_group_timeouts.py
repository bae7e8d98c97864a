"""Timeouts of members at the lower end of their range and below it, and of new members."""

from __future__ import annotations

import pytest

from state.groups.buckets import group_bucket
from state.groups.states import GroupState
from state.protocol_errors import ProtocolError
from tests.unit.state.group_support import Coordinator

INT_MIN = -(2**31)


def test_a_short_rebalance_timeout_does_not_ring_the_clock_without_end() -> None:
    """A static member is waited for until its session ends, with nobody else in the group."""
    coordinator = Coordinator()
    coordinator.join("g", instance="i", version=5, rebalance_timeout_ms=1)
    other = coordinator.join("g", version=3, rebalance_timeout_ms=1)
    coordinator.tick(3_000)
    leaving = coordinator.answer(other)["member"]
    for one in coordinator.group("g").members:
        coordinator.sync("g", one, 1, [])
    coordinator.ask("leave_group_requested", "g", members=[{"member": leaving}])
    before = coordinator.offset
    coordinator.tick(12_999)
    assert coordinator.group("g").state is GroupState.PREPARING
    assert 50 < coordinator.offset - before < 105
    coordinator.tick(13_000)
    assert coordinator.group("g").state is GroupState.EMPTY


@pytest.mark.parametrize("syncs", [True, False])
def test_a_static_member_that_came_back_has_its_old_ids_time_to_sync(syncs: bool) -> None:
    coordinator = Coordinator()
    first = coordinator.join("g", version=3)
    coordinator.join("g", instance="i", session_timeout_ms=120_000)
    coordinator.tick(6_000)
    leader = coordinator.answer(first)["member"]
    coordinator.sync("g", leader, 1)
    back = coordinator.join("g", instance="i", session_timeout_ms=120_000)
    joined = coordinator.answer(back)
    assert (joined["error"], joined["generation"]) == (0, 1)
    if syncs:
        coordinator.sync("g", joined["member"], 1, instance="i")
    for now_ms in range(10_000, 66_001, 4_000):
        coordinator.tick(now_ms)
        heard = [["g", leader, None, 1]]
        coordinator.happen("heartbeats_received", str(group_bucket("g")), heartbeats=heard)
    group = coordinator.group("g")
    assert group.state is (GroupState.STABLE if syncs else GroupState.PREPARING)
    assert (joined["member"] in group.members) is syncs


def test_a_negative_rebalance_timeout_ends_no_sync_in_the_past() -> None:
    """A group that became empty then would have outlived its offsets' retention."""
    coordinator = Coordinator()
    coordinator.commit("g", [["a", 0, 5, -1, ""]])
    coordinator.join("g", version=3, rebalance_timeout_ms=INT_MIN)
    coordinator.tick(3_000)
    group = coordinator.group("g")
    assert (group.state, group.state_since_ms) == (GroupState.EMPTY, coordinator.now_ms)
    assert coordinator.expire() == []


def test_a_negative_rebalance_timeout_ends_no_join_in_the_past() -> None:
    """A static member is waited for from now on, not from weeks ago by steps of 0.1 s."""
    coordinator = Coordinator()
    coordinator.join("g", instance="i", version=5, rebalance_timeout_ms=INT_MIN)
    other = coordinator.join("g", version=3)
    coordinator.tick(3_000)
    for one in coordinator.group("g").members:
        coordinator.sync("g", one, 1, [])
    coordinator.ask("leave_group_requested", "g", members=[coordinator.answer(other)])
    assert coordinator.group("g").join_timer.deadline_ms > coordinator.now_ms


@pytest.mark.parametrize("late_ms", [-4_000, -1, 1_000])
def test_whose_sync_group_came_in_time_is_not_given_up_however_late_it_is_told(
    late_ms: int,
) -> None:
    """Of three members the leader and one more have synced; the third is waited for in vain."""
    coordinator = Coordinator()
    joins = [
        coordinator.join("g", version=3, rebalance_timeout_ms=10_000, session_timeout_ms=60_000)
        for _ in range(3)
    ]
    for now_ms in (3_000, 6_000, 9_000):
        coordinator.tick(now_ms)
    leader, came, missing = (coordinator.answer(one)["member"] for one in joins)
    coordinator.sync("g", leader, 1)
    deadline_ms = coordinator.group("g").sync_deadline_ms
    assert deadline_ms is not None
    coordinator.now_ms = deadline_ms + late_ms
    coordinator.happen(
        "heartbeats_received",
        str(group_bucket("g")),
        heartbeats=[],
        synced=[["g", 0, [missing]], ["g", 1, [came, "nobody"]]],
    )
    coordinator.tick(deadline_ms + 1_000)
    assert set(coordinator.group("g").members) == {leader, came}


def test_a_new_static_member_that_asks_again_without_its_id_waits_as_long_again() -> None:
    coordinator = Coordinator()
    first = coordinator.join("g", version=3)
    coordinator.tick(3_000)
    member = coordinator.answer(first)["member"]
    slow = {"version": 3, "instance": "i", "rebalance_timeout_ms": 900_000}
    coordinator.join("g", **slow)
    coordinator.now_ms = 200_000
    heard(coordinator, member)
    again = coordinator.join("g", new_member="again", **slow)
    coordinator.now_ms = 499_999
    heard(coordinator, member, "again")
    assert "again" in coordinator.group("g").members
    coordinator.now_ms = 500_000
    heard(coordinator, member, "again")
    assert [*coordinator.group("g").members] == [member]
    assert coordinator.answer(again)["error"] == ProtocolError.UNKNOWN_MEMBER_ID


def heard(coordinator: Coordinator, *members: str) -> None:
    """Say that members of the first generation were heard from right now."""
    rows = [["g", one, None, 1, 0] for one in members]
    coordinator.happen("heartbeats_received", str(group_bucket("g")), heartbeats=rows)
