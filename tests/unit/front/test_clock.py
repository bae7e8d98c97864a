"""Timers on an event loop, with a wall clock that the test moves."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import orjson

from streaming.front.clock import Clock
from tests.unit.front.loop_turns import pass_the_loop


class Wall:
    """A wall clock, how often it was looked at, and the timers that were appended as due."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.looks = 0
        self.due: list[tuple[str, int]] = []

    def look(self) -> int:
        self.looks += 1
        return self.now_ms

    def append(self, records) -> Future:
        bodies = [orjson.loads(record.payload) for record in records]
        assert all((record.kind, record.key) == ("timer_due", "") for record in records)
        self.due += [(body["timer"], body["deadline_ms"]) for body in bodies]
        return Future()


def run(scenario) -> Wall:
    wall = Wall()

    async def inner() -> None:
        clock = Clock(asyncio.get_running_loop(), wall.append, wall.look)
        await scenario(clock, wall)

    asyncio.run(inner())
    return wall


def test_past_deadlines_are_due_at_once_in_order_and_once():
    async def scenario(clock, wall):
        clock.replace({"b": 900, "a": 900, "c": 100, "later": 10_000_000})
        await pass_the_loop()
        await pass_the_loop()
        assert dict(clock.armed) == {"later": 10_000_000}

    assert run(scenario).due == [("c", 100), ("a", 900), ("b", 900)]


def test_a_timer_with_slack_waits_for_others_that_ring_meanwhile():
    async def scenario(clock, wall):
        clock.arm("late", 990, slack_ms=60_000)
        clock.arm("idle", 995, slack_ms=1_000_000)
        await pass_the_loop()
        assert not wall.due
        wall.now_ms = 1_050
        clock.arm("prompt", 1_050, slack_ms=0)
        await pass_the_loop()

    assert run(scenario).due == [("late", 990), ("idle", 995), ("prompt", 1_050)]


def test_arming_again_moves_a_timer_and_clearing_forgets_it():
    async def scenario(clock, wall):
        clock.arm("t", 10_000_000, slack_ms=0)
        clock.arm("t", 999, slack_ms=0)
        await pass_the_loop()
        clock.arm("u", 1_010, slack_ms=0)
        clock.clear()
        wall.now_ms = 1_020
        clock.arm("v", 1_015, slack_ms=0)
        await pass_the_loop()

    assert run(scenario).due == [("t", 999), ("v", 1_015)]


def test_a_wall_clock_that_jumped_back_makes_it_wait_again():
    async def scenario(clock, wall):
        clock.arm("t", 1_005, slack_ms=0)
        wall.now_ms = 990
        looks = wall.looks
        async with asyncio.timeout(10):
            while wall.looks == looks:
                await asyncio.sleep(0.001)
            assert not wall.due
            wall.now_ms = 1_005
            while not wall.due:
                await asyncio.sleep(0.001)

    assert run(scenario).due == [("t", 1_005)]


def test_many_timers_that_are_moved_ring_once_each_at_their_last_deadlines():
    names = [f"t{number}" for number in range(50)]

    async def scenario(clock, wall):
        for round_ in range(10):
            for number, name in enumerate(names):
                clock.arm(name, 10_000 - 100 * round_ + number, slack_ms=number % 3)
        wall.now_ms = 10_000
        clock.arm("now", 10_000, slack_ms=0)
        await pass_the_loop()
        assert not clock.armed

    due = run(scenario).due
    assert due == [*((name, 9_100 + number) for number, name in enumerate(names)), ("now", 10_000)]
