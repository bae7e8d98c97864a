"""Reads scenario files, one JSON object a line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

CONTROLLER_FIELDS = {
    "id",
    "from",
    "test",
    "area",
    "given",
    "when",
    "then",
    "derived",
    "note",
}
GROUP_FIELDS = {
    "id",
    "from",
    "tests",
    "applies_to",
    "needs",
    "implementation",
    "config",
    "steps",
    "note",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line of a file; a scenario of the group coordinator has its whole object in given.

    problem: why the line cannot be run, empty when it can.
    """

    id: str
    area: str
    given: dict[str, Any] = field(default_factory=dict)
    when: list[dict[str, Any]] = field(default_factory=list)
    then: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def load(path: Path) -> list[Scenario]:
    """Return the scenarios of a file, in order; one that cannot be read has a problem."""
    lines = enumerate(path.read_bytes().splitlines(), start=1)
    return [_scenario(line, f"{path.name}:{number}") for number, line in lines if line.strip()]


def _scenario(line: bytes, place: str) -> Scenario:
    try:
        body = orjson.loads(line)
        if "steps" in body:
            unknown = sorted(body.keys() - GROUP_FIELDS)
            problem = f"{place}: unknown scenario fields {unknown}" if unknown else ""
            return Scenario(body["id"], "groups", body, problem=problem)
        unknown = sorted(body.keys() - CONTROLLER_FIELDS)
        problem = f"{place}: unknown scenario fields {unknown}" if unknown else ""
        return Scenario(
            body["id"], body["area"], body["given"], body["when"], body["then"], problem
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Scenario(place, "unreadable", problem=f"{place}: not a scenario: {error!r}")
