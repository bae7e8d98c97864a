"""Timers and the event log of a front whose machine's clock was an hour ahead, and set right."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack

from streaming.front.clock import Clock
from streaming.front.main import open_log
from streaming.log.api import NewRecord
from streaming.log.log_clock import LogClock
from streaming.process.wall_clock import wall_clock_ms
from streaming.settings_loader import load_settings

HOUR_MS = 3_600_000
TIMER_MS = 200


def test_a_timer_is_due_by_the_time_of_its_event_though_the_wall_was_set_back(tmp_path):
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    with ExitStack() as before:
        log = open_log(settings, LogClock(lambda: wall_clock_ms() + HOUR_MS), before)
        log.append([NewRecord("k", "", b"{}")])
        armed_ms = log.last_time_ms()
    deadline_ms = armed_ms + TIMER_MS

    async def wait_for_timer() -> None:
        clock = LogClock()
        with ExitStack() as held:
            log = open_log(settings, clock, held)
            due = asyncio.Event()

            def append(records: list[NewRecord]) -> Future[range]:
                due.set()
                return log.append_async(records)

            timers = Clock(
                asyncio.get_running_loop(),
                append,
                clock.now_ms,
            )
            timers.arm("rebalance", deadline_ms, slack_ms=0)
            await asyncio.wait_for(due.wait(), 60)
            log.append([NewRecord("k", "", b"{}")])
            assert deadline_ms <= log.last_time_ms() < armed_ms + HOUR_MS

    asyncio.run(wait_for_timer())
