"""Partition states that look as Kafka writes them, read many at a time, none as an object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson

from state.limits import REPLICAS_MAX
from state.matrix import Int32s, Rows, count_in_row, cut_into_rows

_NUMBERS = b"-0123456789"
_WORDS = (
    b'\n{"controller_epoch":',
    b',"leader":',
    b',"version":',
    b',"leader_epoch":',
    b',"isr":[',
    b"]}\n",
)
"""What stands between the numbers of a state that is a line, but for the commas of its ISR."""
_START, _END = b"".join(_WORDS[:-1]).strip(), _WORDS[-1].strip()
_CONTROLLER_EPOCH, _LEADER, _LEADER_EPOCH, _ISR = 0, 1, 3, 4
"""Where its numbers are."""
_NEITHER = bytes(set(range(256)).difference(_NUMBERS, b",\n"))
_IN_ONE_LIST = bytes.maketrans(b"\n", b",")
_PADDING = -1


def plain_states(znodes: Sequence[bytes]) -> tuple[Int32s, Int32s] | None:
    """Return leader, leader epoch and controller epoch int32[n, 3], and the ISR int32[n, R], padded
    with -1; None if there is no state, or one looks otherwise or holds what none may.

    Source: TopicPartitionStateZNode.encode, for a state that is not recovering.
    """
    lines = b"\n".join(znodes)
    sizes = _sizes(lines.translate(None, _NUMBERS).split(b"\n"))
    if not sizes or len(sizes) != len(znodes) or not _are_whole(b"\n%b\n" % lines, len(sizes)):
        return None
    try:
        listed = orjson.loads(b"[%b]" % lines.translate(_IN_ONE_LIST, _NEITHER))
        numbers = np.array(listed, dtype=np.int32)
    except (ValueError, OverflowError):
        return None
    states = cut_into_rows(numbers, sizes)
    fields, isr = states[:, [_LEADER, _LEADER_EPOCH, _CONTROLLER_EPOCH]], states[:, _ISR:]
    return (fields, isr) if _are_isrs(isr, np.array(sizes) - _ISR) else None


def _sizes(shapes: Sequence[bytes]) -> list[int]:
    """Return how many numbers each state has, by what is left without them; of none if one looks
    otherwise, or has more than any may: all would take as much memory.
    """
    sizes: dict[bytes, int] = {}
    for shape in set(shapes):
        commas = shape.removeprefix(_START).removesuffix(_END)
        if commas.strip(b",") or shape != _START + commas + _END or len(commas) >= REPLICAS_MAX:
            return []
        sizes[shape] = _ISR + len(commas) + 1
    return [sizes[shape] for shape in shapes]


def _are_whole(lines: bytes, count: int) -> bool:
    """Return whether no number stands within a word, of lines that have all words in order."""
    return all(lines.count(word) == count for word in _WORDS)


def _are_isrs(isr: Int32s, sizes: Rows) -> bool:
    """Return whether all are distinct ids of brokers, as `replica_lists` says."""
    ordered = np.sort(isr, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != _PADDING)
    enough = count_in_row(isr >= 0) == sizes
    return bool(enough.all()) and not twice.any()
