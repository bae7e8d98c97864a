"""What a front that comes is told of timers, and of a pause."""

from __future__ import annotations

import pytest

from state.decisions import Decision, DecisionKind, json_decision
from state.merge import merge
from streaming.decided_rows import FoldedBatch
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import Delivered
from streaming.sinks.batch import decided_batch
from streaming.sinks.decided_so_far import DecidedSoFar

OLD, NEW = 1_000, 2_000
TIMER = "groups/7"


def timers_after(armed_by: list[int], rung_by: int) -> dict[str, int]:
    """The timers that are told after a batch whose events armed one, and let it ring."""
    decided = DecidedSoFar(ClusterImage(), {TIMER: OLD}, paused=False, without_term=False)
    armed = {"timer": TIMER, "deadline_ms": NEW, "slack_ms": 0}
    decisions = [json_decision(one, DecisionKind.ARM_TIMER, armed) for one in armed_by]
    folded = FoldedBatch(merge(decisions), {}, 10, rung={TIMER: rung_by})
    decided.fold(decided_batch(1, folded), ())
    with decided.lock:
        told, _ = decided.message(Delivered({}))
    return dict(told.timers)


def test_a_timer_that_rang_is_not_told() -> None:
    assert timers_after([], 5) == {}
    assert timers_after([4], 5) == {}


@pytest.mark.parametrize("armed_by", [5, 6])
def test_one_that_is_armed_by_its_ring_or_later_is(armed_by: int) -> None:
    assert timers_after([4, armed_by], 5) == {TIMER: NEW}


def order(offset: int, paused: bool, reason: str = "") -> Decision:
    return json_decision(offset, DecisionKind.SET_PAUSE, {"paused": paused, "reason": reason})


@pytest.mark.parametrize(
    ("before", "orders", "told"),
    [
        (False, [], (False, None, None)),
        (True, [], (True, None, None)),
        (False, [order(4, True, "disks")], (True, "disks", 4_000)),
        (False, [order(4, True, "disks"), order(5, True)], (True, "disks", 4_000)),
        (False, [order(4, True), order(5, True, "racks")], (True, "racks", 4_000)),
        (False, [order(4, True, "disks"), order(5, False, "done")], (False, None, None)),
        (True, [order(5, True, "racks")], (True, "racks", None)),
    ],
)
def test_why_it_is_paused_is_told_and_since_when(
    before: bool, orders: list[Decision], told: tuple[bool, str | None, int | None]
) -> None:
    decided = DecidedSoFar(ClusterImage(), {}, paused=before, without_term=False)
    folded = FoldedBatch(merge(orders), {one.offset: one.offset * 1000 for one in orders}, 10)
    decided.fold(decided_batch(1, folded), orders)
    with decided.lock:
        image, _ = decided.message(Delivered({}))
    assert (image.paused, image.pause_reason, image.paused_since_ms) == told
