"""What the front knows of its job: whether there is one, how far it is, whether it is paused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.link.from_job import BatchCompleted
from streaming.link.pause import Pause


@dataclass(slots=True)
class JobProgress:
    """What the job said last about itself; pid None: no job is connected.

    pause: by which nothing is decided, by an operator's wish; completed: up to which offset the
    present job has completed batches; totals and elections (by rule): over all batches that were
    heard of; queue_lengths: requests that each broker has not answered.
    """

    pid: int | None = None
    pause: Pause | None = None
    completed: int = 0
    batch: dict[str, Any] = field(default_factory=dict)
    batch_time_ms: int | None = None
    delivery: dict[str, Any] = field(default_factory=dict)
    queue_lengths: Mapping[str, int] = field(default_factory=dict)
    totals: Counter[str] = field(
        default_factory=lambda: Counter(batches=0, decisions=0, conflicts=0, fenced_batches=0)
    )
    elections: Counter[str] = field(default_factory=Counter)

    def has_job(self) -> bool:
        """Return whether a job is connected."""
        return self.pid is not None

    def is_paused(self) -> bool:
        """Return whether nothing is decided now by an operator's wish."""
        return self.pause is not None

    def is_paused_after(self, offset: int) -> bool:
        """Return whether a job has carried out all up to an event, that one too, and decides
        nothing now by an operator's wish.
        """
        return self.is_paused() and self.completed > offset

    def note_batch(self, batch: BatchCompleted, now_ms: int) -> None:
        """Take what the job says of a batch."""
        self.completed = batch.end_offset
        self.batch = batch.figures()
        self.batch_time_ms = now_ms
        self.elections.update(batch.elections)
        self.totals.update(
            batches=1,
            decisions=batch.decisions,
            conflicts=batch.conflicts,
            fenced_batches=int(batch.fenced),
        )
        self.note_queue_lengths(batch.queue_lengths)

    def note_queue_lengths(self, queue_lengths: Mapping[str, int] | None) -> None:
        """Take how much waits for brokers; None: the job does not say."""
        if queue_lengths is not None:
            self.queue_lengths = queue_lengths
