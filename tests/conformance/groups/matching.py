"""Whether what came is what a scenario asserts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.verdict import NotUnderstoodError

NULL = "<null>"
_CONDITIONS = {"not", "any_of", "starts_with"}


def bound(value: Any, names: Mapping[str, Any]) -> Any:
    """Return a value with every bound name ("$m1") replaced; raises NotUnderstoodError."""
    if isinstance(value, str) and value.startswith("$"):
        if value not in names:
            raise NotUnderstoodError(f"{value} is not bound")
        return names[value]
    if isinstance(value, dict):
        return {key: bound(one, names) for key, one in value.items()}
    return [bound(one, names) for one in value] if isinstance(value, list) else value


def matches(expected: Any, came: Any, *, ordered: bool = False) -> bool:
    """Return whether a value is as asserted: conditions hold, objects have at least the fields,
    lists have the same entries, in any order unless `ordered`.
    """
    if expected is None:
        return True
    if expected == NULL:
        return came is None
    if isinstance(expected, dict):
        if expected.keys() <= _CONDITIONS and expected:
            return _holds(expected, came)
        return isinstance(came, dict) and all(
            key in came and matches(one, came[key]) for key, one in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(came, list) and _same_entries(expected, came, ordered=ordered)
    return type(expected) is type(came) and bool(expected == came)


def _holds(conditions: dict[str, Any], came: Any) -> bool:
    said = {
        "not": lambda value: not matches(value, came),
        "any_of": lambda values: any(matches(value, came) for value in values),
        "starts_with": lambda value: isinstance(came, str) and came.startswith(value),
    }
    return all(said[name](value) for name, value in conditions.items())


def _same_entries(expected: list[Any], came: list[Any], *, ordered: bool) -> bool:
    if len(expected) != len(came):
        return False
    if ordered:
        return all(matches(one, other) for one, other in zip(expected, came, strict=True))
    left = list(came)
    for one in sorted(expected, key=lambda value: value is None):
        at = next((index for index, other in enumerate(left) if matches(one, other)), None)
        if at is None:
            return False
        del left[at]
    return True
