"""Why the controller is paused, and since when: in the status and in the front's log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from state.decisions import DecisionKind
from streaming.front.front import Front
from streaming.process.wall_clock import wall_clock_ms
from tests.unit.front.front_figures import made_front, say

OF_A_PAUSE = ("paused", "pause_reason", "paused_since_ms")


def shown(folder: Path, job: Callable[[Front], None]) -> list[Any]:
    """What the status says of a pause after a job has said something."""

    async def inner() -> list[Any]:
        front, log = made_front(folder)
        with log:
            front._feed.job_connected(77)
            job(front)
            status = front.status()
            return [status[name] for name in OF_A_PAUSE]

    return asyncio.run(inner())


def decide(front: Front, paused: bool, reason: str) -> None:
    body = orjson.dumps({"paused": paused, "reason": reason})
    rows = [[0, str(DecisionKind.SET_PAUSE), len(body)]]
    say(front, {"type": "decisions", "decisions": rows}, body)


def paused(front: Front) -> None:
    decide(front, True, "new disks")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.message for one in caplog.records if "by an operator" in one.message]


def test_a_pause_is_shown_with_its_reason_and_its_begin(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before_ms = wall_clock_ms()
    is_paused, reason, since_ms = shown(tmp_path, paused)
    assert (is_paused, reason) == (True, "new disks")
    assert before_ms <= since_ms <= wall_clock_ms()
    assert lines(caplog) == ["the controller is paused by an operator, reason: 'new disks'"]


def test_its_end_is_told_and_nothing_is_shown_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def job(front: Front) -> None:
        paused(front)
        decide(front, False, "done")

    assert shown(tmp_path, job) == [False, None, None]
    assert lines(caplog)[1:] == ["the pause is ended by an operator, reason: 'done'"]


def test_a_job_tells_a_front_that_was_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    told = {"paused": True, "pause_reason": "new disks", "paused_since_ms": 1_000}
    found = shown(tmp_path, lambda front: say(front, {"type": "image", **told}))
    assert found == list(told.values())
    assert lines(caplog) == ["the controller is paused by an operator, reason: 'new disks'"]


def test_a_job_that_was_started_again_does_not_make_the_front_forget(tmp_path: Path) -> None:
    def job(front: Front) -> None:
        paused(front)
        say(front, {"type": "image", "paused": True})

    is_paused, reason, since_ms = shown(tmp_path, job)
    assert (is_paused, reason) == (True, "new disks")
    assert since_ms is not None


def test_when_both_were_started_again_neither_is_known(tmp_path: Path) -> None:
    found = shown(tmp_path, lambda front: say(front, {"type": "image", "paused": True}))
    assert found == [True, None, None]
