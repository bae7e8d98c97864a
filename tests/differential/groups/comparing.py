"""Answers in a form by which two coordinators can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_DRAWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LEFT_OUT = frozenset({"throttle_time_ms"})
_UNORDERED = frozenset({"members", "groups", "topics", "partitions", "results"})


def comparable(part: Any) -> Any:
    """Return an answer without what is drawn by chance or says nothing, and in one order."""
    match part:
        case Mapping():
            return {
                key: _ordered(key, comparable(value))
                for key, value in part.items()
                if key not in _LEFT_OUT
            }
        case list():
            return [comparable(one) for one in part]
        case str():
            return _DRAWN.sub("?", part)
        case _:
            return part


def _ordered(key: str, value: Any) -> Any:
    return sorted(value, key=repr) if key in _UNORDERED and isinstance(value, list) else value


def unequal(stock: Any, ours: Any, *, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where two answers differ, and what each has there."""
    if isinstance(stock, dict) and isinstance(ours, dict) and stock.keys() == ours.keys():
        for key in stock:
            yield from unequal(stock[key], ours[key], place=f"{place} {key}")
    elif isinstance(stock, list) and isinstance(ours, list) and len(stock) == len(ours):
        for number, both in enumerate(zip(stock, ours, strict=True)):
            yield from unequal(*both, place=f"{place} {number}")
    elif stock != ours:
        yield place.strip(), stock, ours
