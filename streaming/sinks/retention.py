"""How long the logs keep what they have.

All three logs keep `log.retention.ms`. The event log also keeps what the oldest retained
micro-batch would need to be folded again; the front cuts it, at the offset the job names with each
batch.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from streaming.log.api import LogUnavailable, LogWriter
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.recorded import kept_from, open_log
from streaming.paths import DataDir

logger = logging.getLogger(__name__)

_CHECK_EVERY_S = 60.0


class Retention:
    """Cuts the logs the job writes, and knows from where on the event log is still needed."""

    def __init__(
        self,
        folders: DataDir,
        writers: Mapping[Path, LogWriter],
        *,
        retention_ms: int,
        batches_retained: int,
    ) -> None:
        """Take the job's own logs by folder, how long to keep, and how many batches stay
        repeatable.
        """
        self._folders = folders
        self._writers = writers
        self._retention_ms = retention_ms
        self._ends: deque[int] = deque(maxlen=batches_retained + 1)
        self._next_check = time.monotonic() + _CHECK_EVERY_S
        self._retain_from = 0

    def checked(self, end_offset: int | None) -> int:
        """Note a batch's end, now and then cut the logs, and return from where the event log is
        needed.
        """
        if end_offset is not None:
            self._ends.append(end_offset)
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + _CHECK_EVERY_S
            self._cut()
        return self._retain_from

    def _cut(self) -> None:
        before_ms = time.time_ns() // 1_000_000 - self._retention_ms
        for folder, writer in self._writers.items():
            with EmbeddedLogReader(folder) as reader:
                writer.truncate_before(kept_from(reader, before_ms))
        if len(self._ends) == self._ends.maxlen:
            try:
                with closing(open_log(self._folders.event_log)) as reader:
                    self._retain_from = min(self._ends[0], kept_from(reader, before_ms))
            except LogUnavailable as error:
                logger.warning("the event log is cut later: %s", error)
