"""Pauses before something that failed is tried again."""

from __future__ import annotations

from streaming.process.back_off import BackOff


def test_pauses_double_and_begin_anew() -> None:
    back_off = BackOff(1.0, 30.0)
    assert [back_off.pause_s() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    back_off.reset()
    assert back_off.pause_s() == 1
