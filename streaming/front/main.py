"""Runs the front as a process: opens the log, serves, ends on SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal

from streaming.front.front import Front
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.settings import Settings


def run_front(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT, then give the controller role back; return the exit code.

    Raises LogLocked when a front of the same data folder runs already, PortTaken, CorruptLog, and
    LogError when the log fails while serving: the process must end, a new one opens it again.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    with EmbeddedLogWriter(
        DataDir(settings.data_dir).events, segment_bytes=settings.event_log_segment_bytes
    ) as writer:
        asyncio.run(_serve(settings, writer))
    return 0


async def _serve(settings: Settings, writer: EmbeddedLogWriter) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await Front(settings, writer).run(stopped)
