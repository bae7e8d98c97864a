"""What can be said of a scenario: passed, failed, or skipped for a stated reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NO_ERROR, KNOWN = "run", "vocabulary"
"""Facts about the runner: it came to the end, and could read everything."""


class Outcome(StrEnum):
    """How a scenario ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Failure:
    """One fact that does not hold."""

    fact: str
    expected: Any
    came: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """A scenario's outcome; a skipped one has a reason, a failed one its failures."""

    id: str
    outcome: Outcome
    failures: tuple[Failure, ...] = ()
    reason: str = ""

    @property
    def is_of_facts(self) -> bool:
        """Whether something was compared and did not hold; else the runner gave up before."""
        return any(one.fact not in {NO_ERROR, KNOWN} for one in self.failures)


class SkippedError(Exception):
    """The scenario needs something that does not exist here; the message says what."""


class NotUnderstoodError(Exception):
    """The scenario says something the runner has no reading for; that fails the scenario."""


@dataclass(slots=True)
class Findings:
    """What the checks of one scenario found."""

    failures: list[Failure] = field(default_factory=list)

    def expect(self, fact: str, expected: Any, came: Any) -> None:
        """Note a failure when what came is not what was expected."""
        if expected != came:
            self.failures.append(Failure(fact, expected, came))


def only(fields: dict[str, Any], allowed: set[str], where: str) -> None:
    """Raise NotUnderstoodError when an object has fields the runner would silently pass over."""
    unknown = sorted(fields.keys() - allowed)
    if unknown:
        raise NotUnderstoodError(f"{where} has fields {unknown}, which the runner cannot read")
