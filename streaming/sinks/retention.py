"""How long the logs keep what they have.

All three logs keep `log.retention.ms`. The event log also keeps what the oldest retained
micro-batch would need to be folded again; the front cuts it, at the offset the job names with each
batch.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from streaming.log.api import LogError, LogReader
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.kept_reader import KeptReader
from streaming.log.location import LogLocation
from streaming.log.log_clock import LogClock
from streaming.log.recorded import kept_from, oldest_kept_ms
from streaming.paths import DataDir

logger = logging.getLogger(__name__)

_CHECK_EVERY_S = 60.0
_HOUR_MS = 3_600_000


class Truncated(Protocol):
    """A log that is cut by who writes it."""

    def truncate_before(self, offset: int) -> int:
        """As `LogWriter.truncate_before`."""


class Retention:
    """Cuts the logs the job writes, and knows from where on the event log is still needed."""

    def __init__(
        self,
        folders: DataDir,
        writers: Mapping[Path, Truncated],
        *,
        retention_ms: int,
        batches_retained: int,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """Take the job's own logs by folder, how long to keep, how many batches stay repeatable,
        and the clock: by default the wall's without its steps, so that one of them ends no log.
        """
        self._now_ms = LogClock().now_ms if now_ms is None else now_ms
        self._event_log = folders.event_log
        self._events = KeptReader(folders.event_log)
        self._writers = writers
        self._retention_ms = retention_ms
        self._ends: deque[int] = deque(maxlen=batches_retained + 1)
        self._next_check = time.monotonic() + _CHECK_EVERY_S
        self._retain_from = 0
        self._uncut: set[LogLocation] = set()
        self._ahead: set[LogLocation] = set()

    def folded(self, end_offset: int) -> None:
        """Note the end of a batch of the query."""
        self._ends.append(end_offset)

    def checked(self) -> int:
        """Cut the logs, now and then, and return from where the event log is needed."""
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + _CHECK_EVERY_S
            self._cut()
        return self._retain_from

    def close(self) -> None:
        """Let go of the event log."""
        self._events.close()

    def _cut(self) -> None:
        for folder, writer in self._writers.items():
            with self._cut_later(folder), EmbeddedLogReader(folder) as reader:
                writer.truncate_before(self._kept_from(folder, reader))
        if len(self._ends) == self._ends.maxlen:
            with self._cut_later(self._event_log), self._events.opened() as reader:
                self._retain_from = min(self._ends[0], self._kept_from(self._event_log, reader))

    def _kept_from(self, log: LogLocation, reader: LogReader) -> int:
        """Return from where on a log is kept; say once when it is ahead of the clock."""
        now_ms = self._now_ms()
        oldest_ms = oldest_kept_ms(reader, now_ms, self._retention_ms)
        ahead_ms = oldest_ms + self._retention_ms - now_ms
        if ahead_ms > _HOUR_MS and log not in self._ahead:
            self._ahead.add(log)
            hours = ahead_ms / _HOUR_MS
            logger.warning("the log at %s is %.1f hours ahead of the clock", log, hours)
        return kept_from(reader, oldest_ms)

    @contextmanager
    def _cut_later(self, log: LogLocation) -> Iterator[None]:
        """Keep a log as it is while it cannot be read, which is logged once: neither batches nor
        the other logs need what is old in it.
        """
        try:
            yield
        except (LogError, OSError) as error:
            if log not in self._uncut:
                logger.warning("nothing is cut off the log at %s: %s", log, error)
            self._uncut.add(log)
        else:
            self._uncut.discard(log)
