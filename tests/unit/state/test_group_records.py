"""What of a group is in its topic, and when it is written."""

from __future__ import annotations

from typing import Any

from tests.unit.state.group_support import Coordinator, metadata


def written(coordinator: Coordinator) -> list[dict[str, Any]]:
    """Return the contents of the groups' records so far."""
    records = [record for step in coordinator.steps for record in step.get("records", ())]
    assert all(one["type"] == "group_metadata" for one in records)
    return [one["value"] for one in records]


def row(member: str, instance: str | None, assignment: str, session_ms: int) -> dict[str, Any]:
    return {
        "member": member,
        "instance": instance,
        "client": "client",
        "host": "/host",
        "rebalance_timeout_ms": 60_000,
        "session_timeout_ms": session_ms,
        "subscription": metadata("a"),
        "assignment": assignment,
    }


def test_a_group_is_written_when_it_is_assigned_changed_or_emptied() -> None:
    """GroupCoordinator.doSyncGroup, updateStaticMemberAndRebalance, onCompleteJoin."""
    coordinator = Coordinator()
    first = coordinator.join("g", version=3)
    second = coordinator.join("g", instance="i")
    coordinator.tick(6_000)
    leader, other = [coordinator.answer(one)["member"] for one in (first, second)]
    coordinator.sync("g", other, 1, instance="i")
    assert written(coordinator) == [], "members that join are told of, and not written"

    coordinator.tick(7_000)
    coordinator.sync("g", leader, 1, [[leader, "AAEC"], [other, "AAED"]])
    assigned = {
        "protocol_type": "consumer",
        "generation": 1,
        "protocol": "range",
        "leader": leader,
        "state_since_ms": 6_000,
        "members": [row(leader, None, "AAEC", 10_000), row(other, "i", "AAED", 10_000)],
    }
    assert written(coordinator) == [assigned]

    back = coordinator.join("g", instance="i", session_timeout_ms=20_000)
    renamed = coordinator.answer(back)["member"]
    of_new_id = row(renamed, "i", "AAED", 20_000)
    changed = {"state_since_ms": 7_000, "members": [assigned["members"][0], of_new_id]}
    assert written(coordinator)[1:] == [assigned | changed]

    coordinator.tick(8_000)
    leaving = [{"member": leader}, {"member": renamed, "instance": "i"}]
    coordinator.ask("leave_group_requested", "g", members=leaving)
    nobody = {"generation": 2, "protocol": None, "leader": None, "members": []}
    assert written(coordinator)[2:] == [assigned | nobody | {"state_since_ms": 8_000}]
