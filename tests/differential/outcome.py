"""What a run came to, in a comparison of controllers or of coordinators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.differential.compare import Difference


@dataclass(slots=True)
class Outcome:
    """steps: what was done. differences: those nobody knows, of the step that ended the run;
    explanation: what led to them. known: in how many steps something differed that is meant to.
    tried: how often something came up, for a look at what a run covers.
    """

    seed: int
    steps: list[Any] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    explanation: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)

    def report(self) -> str:
        """Return the run in words."""
        lines = [f"seed {self.seed}, {len(self.steps)} steps"]
        lines += [f"{number:3} {step}" for number, step in enumerate(self.steps, 1)]
        lines += [f"known, in {count} steps: {name}" for name, count in self.known.items()]
        lines += [f"DIFFERENT {one}" for one in self.differences]
        return "\n".join([*lines, *self.explanation])
