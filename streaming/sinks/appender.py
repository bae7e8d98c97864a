"""Appends what came of decisions to the event log, through the front, for as long as it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from streaming.errors import HelmstreamError
from streaming.link.job_side import JobLink, LinkDown
from streaming.log.api import LogRecord, NewRecord

logger = logging.getLogger(__name__)

_RETRY_S = 0.2


class JobStopping(HelmstreamError):
    """The job was asked to stop while events waited for the front: their batch is run again."""


class SinkAppender:
    """The sinks' door to the event log; any thread may use it."""

    def __init__(
        self, link: JobLink, stopped: Callable[[], bool], *, unfolded: Iterable[LogRecord]
    ) -> None:
        """Take the link, and the events that are in the log but not folded after a restart."""
        self._link = link
        self._stopped = stopped
        self._unfolded = list(unfolded)

    def append(self, events: list[NewRecord]) -> int:
        """Append durably and return the first one's offset.

        While the front is away this waits; raises JobStopping when the job is to end meanwhile,
        AppendRefused when the log never takes one of them.
        """
        while True:
            try:
                return self._link.append(events)
            except LinkDown as error:
                if self._stopped():
                    raise JobStopping(f"{len(events)} events wait for the front: {error}") from None
                logger.warning("events wait for the front: %s", error)
                time.sleep(_RETRY_S)

    def append_of_batch(self, events: list[NewRecord], end_offset: int) -> list[int]:
        """Append what came of a batch that folded up to end_offset, and return the offsets.

        The first batch after a restart may have been here before: what it has appended then is
        found behind the events it folds.
        """
        before = [record for record in self._unfolded if record.offset >= end_offset]
        self._unfolded = []
        found = {(one.kind, one.key, one.payload): one.offset for one in reversed(before)}
        offsets = [found.get((one.kind, one.key, one.payload)) for one in events]
        missing = [one for one, offset in zip(events, offsets, strict=True) if offset is None]
        start = self.append(missing) if missing else 0
        fresh = iter(range(start, start + len(missing)))
        return [next(fresh) if offset is None else offset for offset in offsets]
