"""When a window is over, however long our machine folds and the reader reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from streaming.decided_rows import FoldedBatch
from streaming.shadow import shadow as module
from streaming.shadow.looks import Look
from streaming.shadow.shadow import Watcher, follow
from streaming.shadow.verdicts import Status
from tests.e2e.waiting import wait_for
from tests.unit.shadow.support import WINDOW_MS, Beside, state, unstarted, watching

OFFLINE = "offline_partition_elected"
FOLD_MS = 60_000
OF_ANOTHER = {("other", 0): state(2, [2, 3], 5, 10)}
ELECTED = {("t", 0): state(2, [2, 3], 5, 10)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the main loop takes for the present."""
    clock = SimpleNamespace(now_ms=1_000_000)
    monkeypatch.setattr(module, "steady_clock_ms", lambda: clock.now_ms)
    monkeypatch.setattr(module, "_TICK_S", 0.001)
    return clock


@pytest.fixture
def beside(clock: SimpleNamespace) -> Beside:
    """Each fold takes much longer than the window."""
    beside = Beside()
    fold = beside.engine.decided

    def slowly(until: int) -> Iterator[FoldedBatch]:
        clock.now_ms += FOLD_MS
        return fold(until)

    beside.engine.decided = slowly
    return beside


def taken(beside: Beside, watcher: Watcher, looks: Sequence[Look], ticks: int = 0) -> None:
    """Have the main loop take looks, and then some ticks without one."""
    for look in looks:
        watcher.looks.put(look)
    turns = iter(range(len(looks) + ticks))
    follow(beside.shadow, watcher, lambda: next(turns, None) is None, lambda: None)


def test_a_match_that_waits_behind_a_slow_fold_agrees(
    beside: Beside, clock: SimpleNamespace
) -> None:
    """It was seen at once, in a look after the next one, and is taken a minute later."""
    start = clock.now_ms
    died = Look(start, [beside.brokers(unregistered=[1])])
    taken(beside, unstarted(), [died, Look(start + 10, states=OF_ANOTHER)])
    assert beside.statuses() == []
    taken(beside, unstarted(), [Look(start + 20, states=ELECTED)], ticks=3)
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_a_window_ends_while_looks_come_without_a_pause(
    beside: Beside, clock: SimpleNamespace
) -> None:
    start = clock.now_ms
    others = [Look(start + ms, states=OF_ANOTHER) for ms in (WINDOW_MS - 1, WINDOW_MS)]
    died = Look(start, [beside.brokers(unregistered=[1])])
    taken(beside, unstarted(), [died, others[0]])
    assert beside.statuses() == []
    taken(beside, unstarted(), others[1:])
    assert beside.statuses() == [(Status.MISSED, OFFLINE)]


def test_a_window_ends_when_nothing_comes(beside: Beside, clock: SimpleNamespace) -> None:
    died = Look(clock.now_ms, [beside.brokers(unregistered=[1])])
    taken(beside, unstarted(), [died], ticks=1)
    assert beside.statuses() == [(Status.MISSED, OFFLINE)]


def test_a_window_begins_when_the_look_is_over(beside: Beside, clock: SimpleNamespace) -> None:
    """Reading everything takes long; what was read last was not known before."""
    start = clock.now_ms
    died = Look(start, [beside.brokers(unregistered=[1])], over_ms=start + FOLD_MS)
    taken(beside, unstarted(), [died, Look(start + FOLD_MS, states=OF_ANOTHER)])
    assert beside.statuses() == []


def test_nothing_is_missed_while_zookeeper_cannot_be_read(
    beside: Beside, clock: SimpleNamespace
) -> None:
    """The live controller may have done it all the same."""
    died = Look(clock.now_ms, [beside.brokers(unregistered=[1])])
    taken(beside, unstarted(held=False), [died], ticks=3)
    assert (beside.statuses(), beside.shadow.comparison.unsettled) == ([], 1)


def test_nothing_is_missed_while_a_look_is_under_way(
    beside: Beside, clock: SimpleNamespace
) -> None:
    """Its result came in time, however long it is read."""
    under_way, read = threading.Event(), threading.Event()
    died = Look(clock.now_ms, [beside.brokers(unregistered=[1])])

    def look() -> Look:
        under_way.set()
        assert read.wait(60)
        return Look(clock.now_ms, states=ELECTED)

    with watching(look) as watcher:
        assert under_way.wait(60)
        taken(beside, watcher, [died], ticks=3)
        assert beside.statuses() == []
        read.set()
        wait_for("the look", lambda: not watcher.looks.empty())
        taken(beside, watcher, [], ticks=1)
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_nothing_is_missed_while_zookeeper_is_silent(
    beside: Beside, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection counts as held until it is noticed, and what is written fires no watch."""
    monkeypatch.setattr(module, "_QUIET_S", 0.01)
    looks = [Look(clock.now_ms, [beside.brokers(unregistered=[1])])]
    silent, end = threading.Event(), threading.Event()

    def look() -> Look:
        if looks:
            return looks.pop()
        silent.set()
        assert end.wait(60)
        return Look(clock.now_ms, states=ELECTED)

    with watching(look) as watcher:
        assert silent.wait(60)
        taken(beside, watcher, [], ticks=3)
        assert (beside.statuses(), beside.shadow.comparison.unsettled) == ([], 1)
        end.set()
        wait_for("the look", lambda: not watcher.looks.empty())
        taken(beside, watcher, [], ticks=1)
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_a_window_does_not_end_amid_a_look(beside: Beside, clock: SimpleNamespace) -> None:
    """What was written while it was under way is in the next one."""
    start = clock.now_ms
    died = Look(start, [beside.brokers(unregistered=[1])])
    long = Look(start + 10, states=OF_ANOTHER, over_ms=start + FOLD_MS)
    taken(beside, unstarted(), [died, long, Look(start + FOLD_MS, states=ELECTED)])
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]
