"""What is counted of groups: rebalances, how long they took, and who and what went."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.front.groups.figures import GroupFigures


def change(kind: str, at_ms: int = 0, **more: Any) -> Any:
    return {"change": kind, "at_ms": at_ms, **more}


def told(*changes: Any, group: str = "g") -> GroupFigures:
    figures = GroupFigures()
    for one in changes:
        figures.decided(group, [one])
    return figures


def test_a_rebalance_counts_from_its_beginning_to_its_assignment() -> None:
    figures = told(
        change("rebalance_started", 1_000, reason="member a joined"),
        change("generation_started", 1_300),
        change("rebalance_started", 1_400, reason="member b joined"),
        change("generation_started", 1_900),
        change("assignment_distributed", 2_100),
        change("assignment_distributed", 2_100),  # once more, by the decision about it
    )
    found = figures.status()
    assert (found["rebalances"], found["completed_rebalances"]) == (2, 1)
    assert found["rebalance_seconds_sum"] == pytest.approx(1.1)
    seconds = dict(found["rebalance_seconds"])
    assert (seconds[1.0], seconds[2.5], seconds[None]) == (0, 1, 1)


@pytest.mark.parametrize("end", ["group_emptied", "group_removed"])
def test_one_that_ends_with_nobody_is_not_completed(end: str) -> None:
    figures = told(
        change("rebalance_started", 1_000, reason=""),
        change(end, 2_000, reason="deleted"),
        change("assignment_distributed", 3_000),
    )
    found = figures.status()
    assert (found["rebalances"], found["completed_rebalances"]) == (1, 0)


def test_one_that_goes_on_elsewhere_is_not_completed_here() -> None:
    figures = told(change("rebalance_started", 1_000, reason=""))
    figures.forget()
    figures.decided("g", [change("assignment_distributed", 900_000)])
    assert figures.status()["completed_rebalances"] == 0


def test_groups_are_counted_apart_and_the_slowest_too() -> None:
    figures = told(change("rebalance_started", 0, reason=""))
    figures.decided("h", [change("rebalance_started", 500, reason="")])
    figures.decided("g", [change("assignment_distributed", 400_000)])
    figures.decided("h", [change("assignment_distributed", 600)])
    seconds = dict(figures.status()["rebalance_seconds"])
    assert (seconds[0.1], seconds[300.0], seconds[None]) == (1, 1, 2)


def test_members_and_offsets_that_went_are_counted_by_reason() -> None:
    partitions = [["t", 0], ["t", 1]]
    figures = told(
        change("member_removed", member="a", instance=None, reason="session_expired"),
        change("member_removed", member="b", instance=None, reason="left"),
        change("member_removed", member="c", instance=None, reason="left"),
        change("offsets_removed", partitions=partitions, reason="expired"),
        change("offsets_removed", partitions=partitions, reason="deleted"),
    )
    found = figures.status()
    removed = found["members_removed"]
    assert (removed["left"], removed["session_expired"], removed["group_full"]) == (2, 1, 0)
    assert found["expired_offsets"] == 2
