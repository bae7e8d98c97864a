"""The outcome log and its records; docs/data-folder.md says which there are."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

import orjson

from streaming.log.api import LogWriter, NewRecord

logger = logging.getLogger(__name__)


class OutcomeLog:
    """Takes records that nobody waits for: where some are missing, that is logged once."""

    def __init__(self, writer: LogWriter) -> None:
        """Take the open log."""
        self._writer = writer
        self._is_whole = True

    def append(self, records: list[NewRecord]) -> None:
        """Append records without waiting."""
        self._writer.append_async(records).add_done_callback(self._look)

    def _look(self, appended: Future[range]) -> None:
        error = appended.exception()
        if error is not None and self._is_whole:
            logger.warning("the outcome log misses what came of batches from now on: %s", error)
        self._is_whole = error is None


def outcome(kind: str, body: dict[str, Any]) -> NewRecord:
    """Return a record of the outcome log."""
    return NewRecord(kind, "", orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
