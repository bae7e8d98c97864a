"""Expectations that are almost right: a scenario must fail with each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, Any] = MappingProxyType({})


def mutants(
    value: Any,
    keep: Callable[[str, Any], bool] = lambda _key, _value: False,
    instead: Mapping[str, Any] = NOTHING,
    something: Any = 77,
) -> Iterator[Any]:
    """Yield copies of an expectation, each with one leaf or list changed.

    keep tells of an object's key and value whether it stays as it is. instead: by key, what comes
    in place of null, and into empty lists, at that key and below it; elsewhere it is `something`.
    """
    if isinstance(value, dict) and value.keys() == {"any_of"}:
        yield {"any_of": ["77"]}
    elif isinstance(value, dict) and value:
        for key, one in value.items():
            if not keep(key, one):
                for mutant in mutants(one, keep, instead, instead.get(key, something)):
                    yield {**value, key: mutant}
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        for at, one in enumerate(value):
            for mutant in mutants(one, keep, instead, something):
                yield [*value[:at], mutant, *value[at + 1 :]]
    elif value != {}:
        yield _changed(value, something)


def _changed(value: Any, something: Any) -> Any:
    """Return another value of the same sort; "$..." names what a story bound."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return "77" if value.startswith("$") else value + "7"
    if isinstance(value, list):
        one_more = something if not value else "77" if isinstance(value[0], str) else 77
        return [*value, one_more]
    return something
