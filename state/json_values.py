"""Values out of a decoded JSON object, checked for their type."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from state.limits import REPLICAS_MAX
from state.matrix import Int32s, pad_rows


def int64(value: object) -> int:
    """Return a whole number of 64 bits: times, offsets, epochs of brokers.

    Raises TypeError for anything else, booleans too, ValueError for a larger one.
    """
    return _whole(value, 64)


def int32(value: object) -> int:
    """Return a whole number of 32 bits: ids of brokers, partitions, versions, leader epochs.

    Raises TypeError for anything else, booleans too, ValueError for a larger one.
    """
    return _whole(value, 32)


def config_number(key: str, value: object) -> int:
    """Return a value of the configuration: times take 64 bits, all other numbers 32.

    Raises TypeError for anything but a whole number, ValueError for a larger one.
    """
    return (int64 if key.endswith(".ms") else int32)(value)


def _whole(value: object, bits: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} is not a {bits}-bit number")
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
    encoded = text(value)
    a2b_base64(encoded, strict_mode=True)
    return encoded


def optional_bool(value: object) -> bool | None:
    """Return true, false or None; raises TypeError for anything else."""
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true, false nor null")
    return value


def optional_int64(value: object) -> int | None:
    """Return a whole number of 64 bits or None; raises TypeError, ValueError."""
    return None if value is None else int64(value)


def optional_int32(value: object) -> int | None:
    """Return a whole number of 32 bits or None; raises TypeError, ValueError."""
    return None if value is None else int32(value)


def int32_tuple(values: Iterable[object]) -> tuple[int, ...]:
    """Return the whole numbers, of 32 bits, of a list; raises TypeError, ValueError."""
    return tuple(map(int32, values))


def int32_array(values: object) -> Int32s:
    """Return int32[n] from a list of whole numbers; raises TypeError, OverflowError."""
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    _check_whole(values)
    return np.array(values, dtype=np.int32)


def objects(values: Iterable[object]) -> tuple[dict[str, Any], ...]:
    """Return the objects of a list; raises TypeError for anything else in it."""
    found = []
    for value in values:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not an object")
        found.append(value)
    return tuple(found)


def broker_id_lists(values: object, count: int) -> Int32s:
    """Return int32[count, W], padded, from a list of lists of broker ids, none negative.

    Raises TypeError, ValueError, OverflowError; ValueError too for another count, and for a list of
    more than REPLICAS_MAX.
    """
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    if len(values) != count:
        raise ValueError(f"{len(values)} lists of broker ids for {count} partitions")
    if values.count([]) == count:  # what adding and removing mostly are
        return np.empty((count, 0), dtype=np.int32)
    lists, ids = _lists(values)
    if min(ids, default=0) < 0:
        raise ValueError(f"{min(ids)} is no broker id")
    return pad_rows(lists)


def _lists(values: Sequence[object]) -> tuple[list[list[int]], list[int]]:
    """Return lists of whole numbers, and all of these in a row; raises TypeError, ValueError also
    for a list of more than REPLICAS_MAX.
    """
    if set(map(type, values)) - {list}:
        raise TypeError(f"{values!r} are not all lists")
    lists: list[Any] = list(values)
    longest = max(map(len, lists), default=0)
    if longest > REPLICAS_MAX:
        raise ValueError(f"{longest} replicas are more than the {REPLICAS_MAX} of a partition")
    flat = list(chain.from_iterable(lists))
    _check_whole(flat)
    return lists, flat


def _check_whole(values: list[object]) -> None:
    """Look at each value only when one of them is not what it should be."""
    if set(map(type, values)) - {int}:
        for value in values:
            int64(value)


def partition_numbers(values: object) -> Int32s:
    """Return int32[n] of distinct numbers from 0 up; raises TypeError, ValueError."""
    numbers = int32_array(values)
    if (numbers < 0).any() or len(set(numbers.tolist())) != len(numbers):
        raise ValueError(f"partitions {values!r} are not distinct numbers from 0 up")
    return numbers


def replica_ids(values: object) -> list[int]:
    """Return a list of broker ids as `replica_lists` does."""
    return replica_lists([values])[0]


def replica_lists(values: Sequence[object]) -> list[list[int]]:
    """Return lists of broker ids: none negative, none named twice in a list, at most REPLICAS_MAX.

    Raises TypeError, ValueError naming the first list that is not.
    """
    lists, ids = _lists(values)
    if not _are_ids(ids):
        wrong = next(one for one in lists if not _are_ids(one))
    elif sum(map(len, map(set, lists))) != len(ids):
        wrong = next(one for one in lists if len(set(one)) != len(one))
    else:
        return lists
    raise ValueError(f"{wrong} are not distinct broker ids")


def _are_ids(ids: list[int]) -> bool:
    return not ids or 0 <= min(ids) <= max(ids) < 2**31
