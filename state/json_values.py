"""Values out of a decoded JSON object, checked for their type."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from itertools import chain

import numpy as np

from state.matrix import Int32s, pad_rows


def whole_number(value: object) -> int:
    """Return a whole number; raises TypeError for anything else, booleans too."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def text(value: object) -> str:
    """Return a string; raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def optional_text(value: object) -> str | None:
    """Return a string or None; raises TypeError for anything else."""
    return None if value is None else text(value)


def base64_text(value: object) -> str:
    """Return a string that is base64; raises TypeError, ValueError."""
    base64.b64decode(text(value), validate=True)
    return str(value)


def optional_bool(value: object) -> bool | None:
    """Return true, false or None; raises TypeError for anything else."""
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true, false nor null")
    return value


def optional_number(value: object) -> int | None:
    """Return a whole number or None; raises TypeError for anything else."""
    return None if value is None else whole_number(value)


def number_tuple(values: Iterable[object]) -> tuple[int, ...]:
    """Return the whole numbers of a list; raises TypeError."""
    return tuple(map(whole_number, values))


def whole_numbers(values: object) -> Int32s:
    """Return int32[n] from a list of whole numbers; raises TypeError."""
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    _check_whole(values)
    return np.array(values, dtype=np.int32)


def number_lists(values: object) -> Int32s:
    """Return int32[n, W], padded, from a list of lists of whole numbers; raises TypeError."""
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    if set(map(type, values)) - {list}:
        raise TypeError(f"{values!r} are not all lists")
    _check_whole(list(chain.from_iterable(values)))
    return pad_rows(values)


def _check_whole(values: list[object]) -> None:
    """Look at each value only when one of them is not what it should be."""
    if set(map(type, values)) - {int}:
        for value in values:
            whole_number(value)


def partition_numbers(values: object) -> Int32s:
    """Return int32[n] of distinct numbers from 0 up; raises TypeError, ValueError."""
    numbers = whole_numbers(values)
    if (numbers < 0).any() or len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"partitions {values!r} are not distinct numbers from 0 up")
    return numbers


def broker_ids(values: object) -> list[int]:
    """Return a list of broker ids, none negative; raises TypeError, ValueError."""
    ids: list[int] = whole_numbers(values).tolist()
    if any(broker < 0 for broker in ids):
        raise ValueError(f"{values!r} has a negative broker id")
    return ids
