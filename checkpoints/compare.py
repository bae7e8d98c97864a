"""What differs between two sequences of decisions about the same log.

Decisions are compared as the single records that `state.opened_decisions` opens: by event, kind and
what they are about. Ordinals are not compared, since one decision more moves all that follow.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any, TypeAlias

from state.matrix import NONE
from state.merge import MergedDecision
from state.opened_decisions import open_body

Record: TypeAlias = dict[str, Any]
_PARTS_OF_SUBJECT = ("replica", "broker")
_NAMES = ("topic", "group", "timer", "path", "request_id", "key")


@dataclass(frozen=True, slots=True)
class Difference:
    """One record that is not the same on both sides; None where a side does not have it."""

    offset: int
    kind: str
    subject: str
    left: Record | None
    right: Record | None

    def fields(self) -> list[str]:
        """Return the names of the fields that differ, in the records' order."""
        left, right = self.left or {}, self.right or {}
        names = dict.fromkeys([*left, *right])
        return [name for name in names if left.get(name) != right.get(name)]


def compare(
    left: Iterable[MergedDecision], right: Iterable[MergedDecision]
) -> Iterator[Difference]:
    """Yield what differs, by event offset, kind and subject; both sides ascend by event."""
    for offset, ours, theirs in _by_event(left, right):
        if ours == theirs:
            continue
        before, after = _records(ours), _records(theirs)
        for kind, subject in dict.fromkeys([*before, *after]):
            one, other = before.get((kind, subject)), after.get((kind, subject))
            if one != other:
                yield Difference(offset, kind, subject, one, other)


def _by_event(
    left: Iterable[MergedDecision], right: Iterable[MergedDecision]
) -> Iterator[tuple[int, list[MergedDecision], list[MergedDecision]]]:
    both = heapq.merge(zip(left, repeat(0)), zip(right, repeat(1)), key=_offset)
    for offset, of_event in groupby(both, key=_offset):
        sides: tuple[list[MergedDecision], list[MergedDecision]] = [], []
        for one, side in of_event:
            sides[side].append(one)
        yield offset, *sides


def _offset(sided: tuple[MergedDecision, int]) -> int:
    return sided[0].offset


def _records(decisions: list[MergedDecision]) -> dict[tuple[str, str], Record]:
    found: dict[tuple[str, str], Record] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for one in decisions:
        opened = open_body(one.kind, one.body)
        for record in opened if isinstance(opened, list) else [opened]:
            key = (str(one.kind), subject_of(record))
            seen[key] += 1
            # A second record about the same thing stands beside the second of the other side.
            repeated = f" ({seen[key]})" if seen[key] > 1 else ""
            found[key[0], key[1] + repeated] = record
    return found


def subject_of(record: Record) -> str:
    """Return what a record is about: topic-partition, or a topic, group, timer, path or request."""
    if "topic" in record and "partition" in record:
        parts = [
            f" {name} {record[name]}"
            for name in _PARTS_OF_SUBJECT
            if record.get(name, NONE) != NONE
        ]
        return f"{record['topic']}-{record['partition']}{''.join(parts)}"
    if "broker" in record and "block_start" not in record:
        return f"broker {record['broker']}"
    return next((str(record[name]) for name in _NAMES if record.get(name) is not None), "")
