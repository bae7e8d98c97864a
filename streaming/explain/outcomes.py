"""What came of a decision: whether it was written, and which broker was sent and confirmed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from streaming.log.api import LogReader
from streaming.log.embedded_format import CorruptLog
from streaming.log.recorded import first_at
from streaming.sinks.outcome_log import OUTCOME_KINDS

_CLOCKS_DIFFER_MS = 60_000
"""How far the clocks of those who write the two logs may be apart."""

Refused = dict[tuple[str, int], int]
"""Error code by topic and partition."""


@dataclass(slots=True)
class Outcome:
    """What the outcome log says of the decisions of one event.

    batch: the persisted record of their micro-batch, None before it. delivered_ms, confirmed_ms:
    by broker. refused: of replicas by broker, which has confirmed with these errors. retained:
    False when the log may have let go of what it said, or there is none (kept), as of a shadow or
    a replay, or it is damaged (damage says where); the rest is empty.
    """

    retained: bool = True
    kept: bool = True
    damage: str = ""
    batch: dict[str, Any] | None = None
    delivered_ms: dict[int, int] = field(default_factory=dict)
    confirmed_ms: dict[int, int] = field(default_factory=dict)
    refused: dict[int, Refused] = field(default_factory=dict)

    def lost(self, offset: int, topic: str, partition: int) -> str | None:
        """Say why a change was not written; None when it was, or is not yet."""
        if self.batch is None:
            return None
        if [offset, topic, partition] in self.batch.get("lost", []):
            rejected = self._rejected(offset, topic, partition)
            return "the znode held something else" if rejected is None else rejected
        if offset < self.batch.get("fenced_until", 0):
            return "another controller had taken over"
        return None

    def _rejected(self, offset: int, topic: str, partition: int) -> str | None:
        """Return why ZooKeeper rejected a change, or an earlier one that it rests on."""
        assert self.batch is not None
        reasons = [
            reason
            for at, *named, reason in self.batch.get("rejections", [])
            if at <= offset and named in ([topic, partition], [topic, None])
        ]
        return f"ZooKeeper rejects it: {reasons[-1]}" if reasons else None


def outcome_of(
    reader: LogReader | None, offset: int, time_ms: int, brokers: Iterable[int]
) -> Outcome:
    """Return what came of an event's decisions; brokers: whose confirmation is looked for.

    reader: of the outcome log, None when there is none.
    """
    if reader is None:
        return Outcome(retained=False, kept=False)
    try:
        return _found(reader, offset, time_ms, brokers)
    except CorruptLog as error:  # it may be lost: the decision is explained all the same
        return Outcome(retained=False, damage=str(error))


def _found(reader: LogReader, offset: int, time_ms: int, brokers: Iterable[int]) -> Outcome:
    found = Outcome()
    awaited = set(brokers)
    unconfirmed: dict[int, Refused] = {}
    start = first_at(reader, time_ms - _CLOCKS_DIFFER_MS)
    # What comes after earlier times, or after the end of an earlier batch, is all there.
    whole = start > reader.start_offset()
    for kind, body in _from(reader, start):
        if kind == "refused":
            errors = {(body["topic"], partition): error for partition, error in body["errors"]}
            unconfirmed.setdefault(body["broker_id"], {}).update(errors)
            continue
        if body["end_offset"] is None:
            continue
        refused = unconfirmed.pop(body["broker_id"], {}) if kind == "confirmed" else {}
        if kind == "persisted" and not whole:
            whole = body["end_offset"] <= offset or _began_by(body, time_ms)
            if not whole:
                return Outcome(retained=False)
        if body["end_offset"] <= offset:
            continue
        if kind == "persisted":
            found.batch = found.batch or body
        elif kind == "delivered":
            found.delivered_ms.setdefault(body["broker_id"], body["at_ms"])
        elif body["broker_id"] not in found.confirmed_ms:
            found.confirmed_ms[body["broker_id"]] = body["at_ms"]
            found.refused[body["broker_id"]] = refused
        if found.batch is not None and awaited <= found.confirmed_ms.keys():
            break
    return found if whole or reader.start_offset() == 0 else Outcome(retained=False)


def _began_by(batch: Mapping[str, Any], time_ms: int) -> bool:
    """Return whether a batch that ends after an event of this time is the one with it."""
    began_ms = batch["first_event_ms"]
    return began_ms is not None and began_ms <= time_ms


def _from(reader: LogReader, start: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for record in reader.read(start, reader.end_offset()):
        if record.kind in OUTCOME_KINDS:
            yield record.kind, orjson.loads(record.payload)
