"""Operators hear of each controlled shutdown that the safety check refuses, and of no other."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from state.event_kinds import EventKind
from streaming.front.shutdown_requests import ShutdownRequests
from tests.unit.front.front_figures import made_front

SHUTDOWN = EventKind.CONTROLLED_SHUTDOWN_REQUESTED


class Decided:
    """Answers every request with the same body."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply

    async def submit(self, *_: object) -> dict[str, Any]:
        return self.reply


def submit(reply: dict[str, Any], kind: EventKind = SHUTDOWN) -> int:
    """How many refusals are counted when a request of broker 3 is answered so."""
    counters: Counter[str] = Counter()
    requests = ShutdownRequests(Decided(reply), counters)
    assert asyncio.run(requests.submit(kind, "", {"broker_id": 3}, 1.0)) is reply
    return counters["refused_shutdowns"]


def test_a_refused_shutdown_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    at_risk = [["t", number] for number in range(7)]
    assert submit({"error": 0, "remaining": at_risk, "refused": True}) == 1
    (told,) = caplog.records
    assert told.levelno == logging.WARNING
    assert "broker 3 is refused: without it 7 partitions" in told.message
    assert "(t-0, t-1, t-2, t-3, t-4 ...)" in told.message
    assert "helmstream allow-shutdown 3" in told.message


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"error": 0, "remaining": [], "refused": False}, SHUTDOWN),
        ({"error": 0, "remaining": [["t", 0]], "refused": False}, SHUTDOWN),
        ({"error": 41}, SHUTDOWN),
        ({"error": 0, "refused": True}, EventKind.PRODUCER_IDS_REQUESTED),
    ],
)
def test_nothing_else_is(
    reply: dict[str, Any], kind: EventKind, caplog: pytest.LogCaptureFixture
) -> None:
    assert submit(reply, kind) == 0
    assert not caplog.records


def test_the_gateway_asks_by_way_of_it(tmp_path) -> None:
    async def scenario() -> bool:
        front, log = made_front(tmp_path)
        with log:
            return isinstance(front._gateway._decision_client, ShutdownRequests)

    assert asyncio.run(scenario())
