"""The head starts of a job: one when it begins, and one whenever it has to load the cluster.

A load is the most that a query ever folds at once, and everybody waits for its end. Between them
the query decides alone. docs/adr/0018 says why.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

import pyarrow as pa

from checkpoints.read import has_state
from checkpoints.state_files import StatesUnreadable, read_state_files
from streaming.decided_rows import FoldedBatch, folded_batch
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.sinks.pipeline import Pipeline
from streaming.starting.beginning import Beginning
from streaming.starting.head_start import HeadStart

logger = logging.getLogger(__name__)

_MOST_BYTES = 128 * 1024 * 1024
"""Of states that are read when a load begins; they take a second, in which it could be folded."""


class HeadStarts:
    """Processes the query's micro-batches, and decides ahead of it where that pays."""

    def __init__(
        self,
        settings: Settings,
        folders: DataDir,
        pipeline: Pipeline,
        beginning: Beginning,
        stopped: threading.Event,
    ) -> None:
        """Take where the job begins; nothing happens before `start`."""
        self._checkpoint = folders.checkpoint
        self._new = partial(HeadStart, settings, folders, pipeline, stopped=stopped)
        self._first = beginning.committed
        self._last = self._new(beginning)

    def start(self) -> None:
        """Begin the first."""
        self._last.start()

    def check(self) -> None:
        """Raise what ended the head start, if it failed."""
        self._last.check()

    def close(self) -> None:
        """Stop, and wait until nothing is carried out any more."""
        self._last.close()

    def process_batch(self, batch_id: int, rows: pa.Table) -> None:
        """Take a micro-batch of the query. The next one comes when a load is over."""
        folded = folded_batch(rows)
        if folded is None:
            return
        self._last.process_batch(batch_id, folded)
        if folded.loading and self._last.passed:
            self._begin_again(batch_id, folded)
        self._last.await_load()

    def _begin_again(self, batch_id: int, folded: FoldedBatch) -> None:
        """Fold ahead of the query, from the states that it has just written."""
        try:
            states = read_state_files(self._checkpoint, batch_id, most_bytes=_MOST_BYTES)
        except StatesUnreadable as error:
            logger.info("the query folds the load itself: %s", error)
            return
        fresh, end = not has_state(self._checkpoint), folded.end_offset
        beginning = Beginning(self._first if fresh else end, fresh, end, states)
        self._last = self._new(beginning, running=True)
        self._last.start()
