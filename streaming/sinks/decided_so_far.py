"""What is decided and written so far, which a front that comes is told as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from state.decisions import DecisionKind
from streaming.image.cluster_image import ClusterImage
from streaming.sinks.batch import DecidedBatch


class DecidedSoFar:
    """The image and the armed timers. Whoever looks at the image, or changes it, holds the lock."""

    def __init__(
        self, image: ClusterImage, timers: dict[str, int], *, without_term: bool = False
    ) -> None:
        """Take both as they were where the job begins; without_term: no election is known there."""
        self.lock = threading.Lock()
        self.image = image
        self.end_offset = 0  # up to where batches are complete
        self.query_folds = False  # beside the job's head start
        self._timers = timers
        self._without_term = without_term

    def fold(self, batch: DecidedBatch, visible: Iterable[tuple[int, DecisionKind, bytes]]) -> None:
        """Take what is visible of a batch, as `persisted` gives it; for who holds the lock."""
        for _, kind, body in visible:
            self.image.apply(kind, body)
        for armed in batch.of_kind(DecisionKind.ARM_TIMER):
            self._timers[armed.extra["timer"]] = armed.extra["deadline_ms"]

    def message(self) -> tuple[dict[str, Any], bytes]:
        """Return head and body of the message that tells it; for who holds the lock."""
        whole = self.image.snapshot() if self.image.controller_epoch >= 0 else b""
        head: dict[str, Any] = {
            "type": "image",
            "timers": self._timers,
            "paused": self.image.paused,
            "end_offset": self.end_offset,
            "query_folds": self.query_folds,
        }
        if self._without_term and not whole:  # in a new log the election is still to come
            head["without_term"] = self.end_offset > 0
        return head, whole
