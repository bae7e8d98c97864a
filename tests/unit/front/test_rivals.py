"""The role held under our id by sessions that are not ours."""

from __future__ import annotations

import pytest

from streaming.front.rivals import Rivals, SharedId

OURS, ITS = 0x10, 0x20


class Time:
    now_s = 1_000.0


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def rivals(time):
    rivals = Rivals(lambda: time.now_s)
    rivals.claiming(OURS)
    return rivals


def test_what_a_killed_front_left_and_our_own_sessions_are_no_rivals(rivals):
    for _ in range(9):
        rivals.meet(1000, OURS)
        rivals.meet(1000, ITS)
    rivals.meet(1000, ITS + 1)


def test_who_takes_the_role_back_three_times_within_minutes_is_named(rivals, time):
    rivals.meet(1000, ITS)
    time.now_s += 200
    rivals.meet(1000, ITS + 1)
    time.now_s += 200
    with pytest.raises(SharedId, match=r"controller.id = 1000: another helmstream .* stop one"):
        rivals.meet(1000, ITS + 2)
    assert SharedId.exit_code == 2


def test_takers_far_apart_in_time_are_let_be(rivals, time):
    for number in range(9):
        rivals.meet(1000, ITS + number)
        time.now_s += 301
