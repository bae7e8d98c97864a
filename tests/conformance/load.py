"""Reads scenario files, one JSON object a line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.conformance.verdict import NotUnderstoodError

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


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line of a file; a scenario of the group coordinator has only its id and area."""

    id: str
    area: str
    given: dict[str, Any] = field(default_factory=dict)
    when: list[dict[str, Any]] = field(default_factory=list)
    then: dict[str, Any] = field(default_factory=dict)


def load(path: Path) -> list[Scenario]:
    """Return the scenarios of a file, in order; raises ValueError naming a line it cannot read."""
    scenarios = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                scenarios.append(scenario(orjson.loads(line)))
            except (ValueError, KeyError, NotUnderstoodError) as error:
                raise ValueError(f"{path}:{number}: not a scenario: {error}") from None
    return scenarios


def scenario(body: dict[str, Any]) -> Scenario:
    """Return one scenario; those of the group coordinator have steps and get the area groups."""
    if "steps" in body:
        return Scenario(body["id"], "groups")
    unknown = sorted(body.keys() - CONTROLLER_FIELDS)
    if unknown:
        raise NotUnderstoodError(f"scenario fields {unknown}")
    return Scenario(body["id"], body["area"], body["given"], body["when"], body["then"])
