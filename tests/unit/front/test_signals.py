"""What the controller's thread waits for, and for how long."""

from __future__ import annotations

import threading
import time

import pytest

from streaming.front.signals import GiveUpRole, Signals

SOON_S = 0.05
LONG_S = 30.0


def test_work_is_waited_for_no_longer_than_something_else_is_due() -> None:
    signals = Signals()
    signals.set_held(True)
    began_s = time.monotonic()
    signals.wait_for_work([], began_s + SOON_S)
    assert SOON_S <= time.monotonic() - began_s < LONG_S


def test_what_is_due_waits_for_a_session() -> None:
    signals = Signals()
    done = threading.Event()

    def wait() -> None:
        signals.wait_for_work([], time.monotonic() - 1)
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not done.wait(SOON_S)
    signals.set_held(True)
    assert done.wait(LONG_S)


def test_work_comes_before_what_is_due() -> None:
    signals = Signals()
    signals.set_held(True)
    began_s = time.monotonic()
    signals.wait_for_work(["some"], began_s + LONG_S)
    assert time.monotonic() - began_s < LONG_S / 2


def test_who_waits_hears_of_an_end() -> None:
    signals = Signals()
    threading.Timer(SOON_S, signals.give_up, ["enough"]).start()
    with pytest.raises(GiveUpRole, match="enough"):
        signals.wait_for_work([], time.monotonic() + LONG_S)
