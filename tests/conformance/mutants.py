"""Expectations that are almost right: a scenario must fail with each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def mutants(
    value: Any, keep: Callable[[str, Any], bool] = lambda _key, _value: False
) -> Iterator[Any]:
    """Yield copies of an expectation, each with one leaf or list changed.

    keep tells of an object's key and value whether it stays as it is.
    """
    if isinstance(value, dict) and value.keys() == {"any_of"}:
        yield {"any_of": ["77"]}
    elif isinstance(value, dict) and value:
        for key, one in value.items():
            if not keep(key, one):
                for mutant in mutants(one, keep):
                    yield {**value, key: mutant}
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        for at, one in enumerate(value):
            for mutant in mutants(one, keep):
                yield [*value[:at], mutant, *value[at + 1 :]]
    elif value != {}:
        yield _changed(value)


def _changed(value: Any) -> Any:
    """Return another value of the same sort; "$..." names what a story bound."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return "77" if value.startswith("$") else value + "7"
    return [*value, 77] if isinstance(value, list) else 77
