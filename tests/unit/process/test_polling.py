"""Looking again and again is over when it was seen, or when its time is over."""

from __future__ import annotations

import time

import pytest

from streaming.process.polling import polls


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, on a clock that they alone move."""
    waits: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + sum(waits))
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def test_the_last_look_is_after_the_limit(waited):
    looks = [100.0 + sum(waited) for _ in polls(1.0, 0.5)]
    assert looks == [100.0, 100.5, 101.0, 101.5]


def test_there_is_one_look_at_least(waited):
    assert len(list(polls(-1.0, 0.5))) == 1
    assert waited == []


def test_nobody_waits_who_has_seen_it(waited):
    for _ in polls(1.0, 0.5):
        break
    assert waited == []
