"""What is said about a decision once it was compared, and the sums of that."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Outcome of a comparison.

    DIFFERED: both changed something, not to the same. MISSED: we decided, the live controller did
    nothing. EXTRA: it changed what we would have left alone. EXPLAINED: one of these, by a
    difference that is meant. PASSED_OVER: what came after it made it impossible to see.
    """

    AGREED = "agreed"
    EXPLAINED = "explained"
    PASSED_OVER = "passed_over"
    DIFFERED = "differed"
    MISSED = "missed"
    EXTRA = "extra"


DIVERGENCES = frozenset({Status.DIFFERED, Status.MISSED, Status.EXTRA})


class Difference(StrEnum):
    """Differences from Kafka's controller that are meant, as docs/differences.md names them."""

    SEVERAL_CHANGES = "several changes to a partition in one event"
    DELETION_DURING_REASSIGNMENT = "deleting a topic that is being reassigned"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One comparison.

    kind: the rule or the decision's kind. offset: of the event the decision followed, the first one
    where several had not been seen; None when nothing was decided. decided, live: both values.
    """

    status: Status
    kind: str
    topic: str
    partition: int | None
    offset: int | None
    decided: Any
    live: Any
    why: str = ""

    def as_json(self, **more: Any) -> dict[str, Any]:
        """Return it with names, and more of them."""
        return {
            "status": self.status,
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "decided": self.decided,
            "live": self.live,
            "why": self.why,
            **more,
        }


@dataclass(slots=True)
class Tally:
    """How many comparisons ended how, by status and kind."""

    counts: Counter[tuple[Status, str]] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.counts[verdict.status, verdict.kind] += 1

    def of(self, status: Status) -> int:
        """Return how many ended so."""
        return sum(count for (each, _), count in self.counts.items() if each is status)

    @property
    def divergences(self) -> int:
        """How many differ in a way that nothing explains."""
        return sum(self.of(status) for status in DIVERGENCES)

    def as_json(self) -> dict[str, Any]:
        """Return the sums by status, and by kind within it."""
        by_status: dict[str, dict[str, int]] = {}
        for (status, kind), count in sorted(self.counts.items()):
            by_status.setdefault(str(status), {})[str(kind)] = count
        return {
            "divergences": self.divergences,
            **{str(status): self.of(status) for status in Status},
            "by_kind": by_status,
        }
