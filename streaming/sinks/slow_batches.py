"""Names what was slow: a micro-batch that took long is told with what it was about, and which step
took how long.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field

from state.decisions import BLOCK_KINDS
from streaming.process.wall_clock import wall_clock_ms
from streaming.sinks.batch import DecidedBatch, SinkDecision

logger = logging.getLogger(__name__)

_KINDS_SHOWN = 5


@dataclass(slots=True)
class Steps:
    """The steps of a batch in order, with the seconds that each took."""

    started_s: float = field(default_factory=time.monotonic)
    took_s: dict[str, float] = field(default_factory=dict)
    _since_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._since_s = self.started_s

    def done(self, step: str) -> None:
        """Note that a step has ended, and the next one begins."""
        now_s = time.monotonic()
        self.took_s[step] = now_s - self._since_s
        self._since_s = now_s

    @property
    def all_s(self) -> float:
        """What the steps took together."""
        return self._since_s - self.started_s


class SlowBatches:
    """Logs the batches that took longer than others should have to wait."""

    def __init__(self, threshold_ms: int) -> None:
        """threshold_ms: from a batch's first event until everything of it is carried out."""
        self._threshold_s = threshold_ms / 1000

    def look(self, batch: DecidedBatch, steps: Steps) -> None:
        """Take a batch that is carried out.

        The time before its steps is what its first event waited for, by the clock of events, which
        is ahead of this one for hours after that was set back; then only the steps count.
        """
        first_ms = min(batch.time_ms.values(), default=wall_clock_ms())
        took_s = max((wall_clock_ms() - first_ms) / 1000, steps.all_s)
        if took_s < self._threshold_s:
            return
        before = {"waiting and folding": took_s - steps.all_s}
        parts = ", ".join(f"{name} {took:.2f}" for name, took in (before | steps.took_s).items())
        logger.warning(
            "the batch of events %d to %d took %.2f s, with %s: %s",
            min(batch.time_ms, default=batch.end_offset),
            batch.end_offset - 1,
            took_s,
            _content(batch.decisions) or "nothing decided",
            parts,
        )


def _content(decisions: list[SinkDecision]) -> str:
    """Return how many rows and JSON objects there are of the most frequent kinds."""
    counts: Counter[str] = Counter()
    for one in decisions:
        counts[one.kind] += len(one.lost) if one.kind in BLOCK_KINDS else 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(_KINDS_SHOWN))
