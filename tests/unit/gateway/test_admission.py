"""Places are given, passed on and taken back, until the gateway stops."""

from __future__ import annotations

import asyncio
from collections import Counter

from streaming.gateway.admission import Admission


class Guest:
    """Has a place, or wants one."""

    def __init__(self) -> None:
        self.stopped = False

    async def stop(self) -> None:
        self.stopped = True


def test_a_place_that_is_passed_on_is_the_same_one() -> None:
    counters: Counter[str] = Counter()
    admission = Admission(1, counters)
    first, second = Guest(), Guest()
    assert admission.admit(first)
    assert admission.pass_on(first, second)
    assert not admission.admit(first)
    assert counters == {
        "connections_open": 1,
        "connections_accepted": 1,
        "connections_refused": 1,
    }
    admission.leave(second)
    assert counters["connections_open"] == 0
    assert not admission.pass_on(second, first)
    assert admission.admit(first)


def test_the_end_is_everybodys() -> None:
    counters: Counter[str] = Counter()
    admission = Admission(2, counters)
    first, second = Guest(), Guest()
    assert admission.admit(first)
    asyncio.run(admission.stop())
    assert first.stopped
    assert not admission.admit(second)
    assert counters["connections_refused"] == 0
    assert not admission.pass_on(first, second)
    assert counters["connections_open"] == 0
