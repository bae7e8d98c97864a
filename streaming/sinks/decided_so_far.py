"""What is decided and written so far, which a front that comes is told as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import orjson

from state.decisions import Decision, DecisionKind
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import Delivered, ImageTold
from streaming.link.pause import Pause, pause_after
from streaming.sinks.batch import DecidedBatch


class DecidedSoFar:
    """The image, the armed timers and the pause, if nothing is decided now by an operator's wish.
    Whoever looks at the image, or changes it, holds the lock.

    is_outdated: the image may say what was never written, as another controller was elected, until
    the next load.
    """

    def __init__(
        self,
        image: ClusterImage,
        timers: dict[str, int],
        *,
        paused: bool,
        without_term: bool,
    ) -> None:
        """Take all as they were where the job begins; without_term: no election is known there."""
        self.lock = threading.Lock()
        self.image = image
        self.pause = Pause() if paused else None
        self.is_outdated = False
        self.end_offset = 0  # up to where batches are complete
        self.query_folds = False  # beside the job's head start
        self._timers = timers
        self._without_term = without_term

    @property
    def paused(self) -> bool:
        """Whether nothing is decided now, by an operator's wish."""
        return self.pause is not None

    def fold(self, batch: DecidedBatch, visible: Iterable[Decision]) -> None:
        """Take what is visible of a batch, as `persisted` gives it; for who holds the lock."""
        for one in visible:
            self.image.apply(one.kind, one.body)
            if one.kind is DecisionKind.SET_PAUSE:
                order = orjson.loads(one.body)
                self.pause = pause_after(self.pause, order, batch.time_ms.get(one.offset))
        self.is_outdated &= not batch.is_loaded
        self._fold_timers(batch)

    def _fold_timers(self, batch: DecidedBatch) -> None:
        """Take which timers are armed and which have rung; by its ring one may be armed again."""
        armed_by: dict[str, int] = {}
        for armed in batch.of_kind(DecisionKind.ARM_TIMER):
            timer = armed.content["timer"]
            self._timers[timer] = armed.content["deadline_ms"]
            armed_by[timer] = armed.offset
        for timer, offset in batch.rung.items():
            if armed_by.get(timer, -1) < offset:
                self._timers.pop(timer, None)

    def message(self, delivered: Delivered) -> tuple[ImageTold, bytes]:
        """Return the message that tells it, and its body; for who holds the lock.

        delivered: what is told of all brokers.
        """
        is_known = self.image.controller_epoch >= 0 and not self.is_outdated
        whole = self.image.snapshot() if is_known else b""
        told = ImageTold(
            timers=self._timers,
            paused=self.paused,
            pause_reason=None if self.pause is None else self.pause.reason,
            paused_since_ms=None if self.pause is None else self.pause.since_ms,
            end_offset=self.end_offset,
            query_folds=self.query_folds,
            # In a new log the election is still to come.
            without_term=self._without_term and not whole and self.end_offset > 0,
            brokers=delivered.brokers,
            queue_lengths=delivered.queue_lengths,
        )
        return told, whole
