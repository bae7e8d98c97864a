"""The outcome log and its records; docs/data-folder.md says which there are."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson

from streaming.log.api import LogClosed, LogError, LogWriter, NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.embedded_format import CorruptLog
from streaming.log.log_clock import LogClock

logger = logging.getLogger(__name__)

OUTCOME_KINDS = frozenset({"persisted", "delivered", "confirmed", "refused"})
"""The kinds of its records."""

_OPEN_EVERY_S = 60.0
_WITHOUT_IT = "go on without it"


class OutcomeLog:
    """Takes records that nobody waits for: where some are missing, that is logged once."""

    def __init__(
        self, open_writer: Callable[[], LogWriter], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the log, and again now and then when the disk made its writer give up."""
        self._open_writer = open_writer
        self._now_s = now_s
        self._writer = open_writer()
        self._is_whole = True
        self._open_again_at_s: float | None = None
        self._lock = threading.Lock()

    def append(self, records: list[NewRecord]) -> None:
        """Append records without waiting, from any thread."""
        with self._lock:
            if self._open_again_at_s is not None and self._now_s() >= self._open_again_at_s:
                self._open_again()
            appended = self._writer.append_async(records)
        appended.add_done_callback(self._look)

    def truncate_before(self, offset: int) -> int:
        """As `LogWriter.truncate_before`."""
        with self._lock:
            return self._writer.truncate_before(offset)

    def close(self) -> None:
        """Finish what was appended; for good."""
        with self._lock:
            self._open_again_at_s = math.inf
            self._writer.close()

    def _look(self, appended: Future[range]) -> None:
        error = appended.exception()
        if error is not None and self._is_whole:
            logger.warning("the outcome log misses what came of batches from now on: %s", error)
        self._is_whole = error is None
        if isinstance(error, LogClosed) and self._open_again_at_s is None:
            self._open_again_at_s = self._now_s() + _OPEN_EVERY_S

    def _open_again(self) -> None:
        self._open_again_at_s = None
        self._writer.close()
        try:
            self._writer = self._open_writer()
        except (LogError, OSError) as error:
            logger.warning("the outcome log cannot be opened again: %s", error)


def open_outcomes(folder: Path) -> EmbeddedLogWriter:
    """Open the outcome log; a damaged one is moved aside, since it may be lost.

    Raises LogLocked.
    """
    clock = LogClock()
    try:
        writer = EmbeddedLogWriter(folder, clock=clock.now_ms, without_it=_WITHOUT_IT)
    except CorruptLog as damaged:
        aside = folder.with_name(f"{folder.name}.broken")
        logger.error("%s. It is kept as %s, and a new one is begun", damaged, aside)
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        writer = EmbeddedLogWriter(folder, clock=clock.now_ms)
    clock.not_before(writer.last_time_ms())
    return writer


def outcome(kind: str, body: dict[str, Any]) -> NewRecord:
    """Return a record of the outcome log."""
    return NewRecord(kind, "", orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
