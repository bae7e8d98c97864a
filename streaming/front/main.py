"""Runs the front as a process: opens the log, serves, ends on SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import signal
import time

from streaming.front.front import Front
from streaming.log.embedded import EmbeddedLogWriter, LogLocked
from streaming.paths import DataDir
from streaming.settings import Settings

logger = logging.getLogger(__name__)

_POLL_S = 0.02


def run_front(settings: Settings, *, standby: bool = False) -> int:
    """Serve until SIGTERM or SIGINT, then give the controller role back; return the exit code.

    standby: wait while a front of the same data folder runs; without it LogLocked is raised then.
    Raises PortTaken, CorruptLog, and LogError when the log fails while serving: the process must
    end, a new one opens it again.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with _open_log(settings, standby) as writer:
        asyncio.run(_serve(settings, writer))
    return 0


def _open_log(settings: Settings, standby: bool) -> EmbeddedLogWriter:
    """Open the event log, whose lock says who is the front."""
    folder = DataDir(settings.data_dir).events
    waited = False
    while True:
        try:
            return EmbeddedLogWriter(folder, segment_bytes=settings.event_log_segment_bytes)
        except LogLocked as locked:
            if not standby:
                raise
            if not waited:
                logger.info("waiting until the other front is gone: %s", locked)
            waited = True
            time.sleep(_POLL_S)


async def _serve(settings: Settings, writer: EmbeddedLogWriter) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await Front(settings, writer).run(stopped)
