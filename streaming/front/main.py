"""Runs the front as a process: opens the log, serves, ends on a signal."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from streaming.front.forgetting_loop import ForgettingLoop
from streaming.front.front import Front
from streaming.log.api import LogWriter
from streaming.log.embedded import EmbeddedLogWriter, LogLocked
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.log_clock import LogClock
from streaming.log.writer_lock import WriterLock
from streaming.paths import DataDir
from streaming.process.garbage import collect_each_once
from streaming.process.stop_signals import stop_signals
from streaming.settings import Settings

logger = logging.getLogger(__name__)

_POLL_S = 0.02
Held = TypeVar("Held")


def run_front(settings: Settings, *, standby: bool = False) -> int:
    """Serve until a signal comes, then give the controller role back; return the exit code.

    standby: wait while a front of the same data folder runs; without it LogLocked is raised then.
    Raises PortTaken, CorruptLog, UnusableTopic, LogUnavailable, and LogError when the log fails
    while serving: the process must end, a new one opens it again.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    collect_each_once()
    with ExitStack() as held:
        clock = LogClock()
        writer = open_log(settings, clock, held, standby=standby)
        with asyncio.Runner(loop_factory=ForgettingLoop) as runner:
            runner.run(_serve(settings, writer, clock))
    return 0


def open_log(
    settings: Settings, clock: LogClock, held: ExitStack, *, standby: bool = False
) -> LogWriter:
    """Open the event log, with a clock that is set by what the log has; the lock in its folder says
    who is the front, also for a topic.
    """
    folders = DataDir(settings.data_dir, settings.event_log_url)
    where, segment_bytes, now_ms = folders.event_log, settings.event_log_segment_bytes, clock.now_ms
    writer: LogWriter
    if isinstance(where, Path):
        writer = held.enter_context(
            _when_free(
                lambda: EmbeddedLogWriter(where, clock=now_ms, segment_bytes=segment_bytes), standby
            )
        )
    else:
        held.enter_context(_when_free(lambda: WriterLock(folders.events), standby))
        timeout_ms = settings.controller_lease_ms
        writer = held.enter_context(KafkaLogWriter(where, clock=now_ms, timeout_ms=timeout_ms))
    clock.not_before(writer.last_time_ms())
    return writer


def _when_free(open_log: Callable[[], Held], standby: bool) -> Held:
    waited = False
    while True:
        try:
            return open_log()
        except LogLocked as locked:
            if not standby:
                raise
            if not waited:
                logger.info("waiting until the other front is gone: %s", locked)
            waited = True
            time.sleep(_POLL_S)


async def _serve(settings: Settings, writer: LogWriter, clock: LogClock) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stopped.set)
    await Front(settings, writer, clock.now_ms).run(stopped)
