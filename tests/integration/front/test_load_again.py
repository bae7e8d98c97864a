"""When everything is loaded again under the same claim."""

from __future__ import annotations

from collections import Counter
from threading import Timer
from typing import Any

import pytest

from streaming.front.rivals import Rivals
from streaming.front.seen import Seen
from streaming.front.signals import GiveUpRole, Signals
from streaming.front.term import Term
from streaming.settings_loader import load_settings
from tests.fixtures.waiting import WAIT_S

QUIET_S = 1.0


class Gateway:
    """Has no endpoints."""

    def needs_listeners(self):
        return False

    def endpoints(self, broker_listeners):
        return []


class Log:
    """Counts elections, and asks for a load when the first is appended, as of `before` it."""

    def __init__(self, before, second):
        self.before = before
        self.second = second
        self.term = None
        self.elected = []
        self.end = 40

    def append(self, records):
        start = self.end
        self.end += len(records)
        if records[0].kind == "controller_elected":
            self.elected.append(start)
            if len(self.elected) == 1:
                self.term.load_again(start - self.before)
            else:
                self.second()
        return range(start, self.end)


@pytest.mark.parametrize(("before", "loads", "for_s"), [(1, 1, QUIET_S), (-1, 2, WAIT_S)])
def test_all_is_loaded_again_for_an_end_of_a_pause_behind_the_election(
    zookeeper, zk_session, before, loads, for_s
):
    """The end of a pause is heard of later than it is in the log."""
    settings = load_settings((), [f"zookeeper.connect={zookeeper}", "gateway.listeners=CLIENT"], {})
    signals = Signals()
    log: Any = Log(before, lambda: signals.give_up("loaded again"))
    gateway: Any = Gateway()
    term = log.term = Term(settings, log, signals, gateway, Counter(), seen=Seen(), rivals=Rivals())
    timer = Timer(for_s, signals.give_up, ["nothing more came"])
    try:
        term.connect_and_claim()
        term.load()
        timer.start()
        with pytest.raises(GiveUpRole):
            term.follow()
    finally:
        timer.cancel()
        term.close()
    assert len(log.elected) == loads
