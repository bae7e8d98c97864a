"""The log's clock, with a wall clock that is set and seconds that pass when the test says so."""

from __future__ import annotations

from streaming.log.log_clock import LogClock

HOUR_MS = 3_600_000


class Machine:
    """Its wall clock, and how long it runs."""

    def __init__(self, wall_ms: int) -> None:
        self.wall_ms = wall_ms
        self.up_s = 5.0

    def clock(self) -> LogClock:
        return LogClock(lambda: self.wall_ms, lambda: self.up_s)

    def pass_time(self, seconds: float) -> None:
        self.up_s += seconds
        self.wall_ms += int(seconds * 1000)


def test_it_is_the_wall_clock_while_nobody_sets_that():
    machine = Machine(1_000_000)
    clock = machine.clock()
    for passed_s in (0.0, 0.001, 0.25, 36_000.0):
        machine.pass_time(passed_s)
        assert clock.now_ms() == machine.wall_ms


def test_a_wall_clock_that_is_set_ahead_makes_it_faster_until_it_has_caught_up():
    machine = Machine(10 * HOUR_MS)
    clock = machine.clock()
    before_ms = clock.now_ms()
    machine.wall_ms += HOUR_MS
    assert clock.now_ms() == before_ms
    machine.pass_time(1.6)
    assert clock.now_ms() == before_ms + 1_700
    machine.pass_time(15 * 3600.0)
    assert clock.now_ms() < machine.wall_ms
    machine.pass_time(3600.0)
    assert clock.now_ms() == machine.wall_ms


def test_a_wall_clock_that_is_set_back_does_not_stop_it():
    machine = Machine(10 * HOUR_MS)
    clock = machine.clock()
    before_ms = clock.now_ms()
    machine.wall_ms -= HOUR_MS
    assert clock.now_ms() == before_ms
    machine.pass_time(3.2)
    assert clock.now_ms() == before_ms + 3_000


def test_what_it_is_ahead_goes_away():
    machine = Machine(10 * HOUR_MS)
    clock = machine.clock()
    before_ms = clock.now_ms()
    machine.wall_ms -= HOUR_MS
    for _ in range(16 * 60):
        machine.pass_time(60.0)
        now_ms = clock.now_ms()
        assert before_ms < now_ms >= machine.wall_ms
        before_ms = now_ms
    assert clock.now_ms() == machine.wall_ms


def test_asking_often_loses_no_time():
    machine = Machine(10 * HOUR_MS)
    clock = machine.clock()
    before_ms = clock.now_ms()
    machine.wall_ms -= HOUR_MS
    for _ in range(16_000):
        machine.up_s += 0.0001
        clock.now_ms()
    assert clock.now_ms() - before_ms in {1_499, 1_500}


def test_it_goes_on_from_the_time_of_a_log():
    machine = Machine(9 * HOUR_MS)
    clock = machine.clock()
    clock.not_before(10 * HOUR_MS)
    machine.pass_time(1.6)
    clock.not_before(8 * HOUR_MS)
    assert clock.now_ms() == 10 * HOUR_MS + 1_500
