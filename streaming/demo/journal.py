"""What the three logs say about a step: what was decided, and how long it took to take effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from state.decisions import DecisionKind
from streaming.demo.words import count_of, leader_changes, sentence
from streaming.log.api import LogError, LogRecord
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir

IsEvent = Callable[[str, Mapping[str, Any]], bool]
"""Tells from an event's kind and payload whether it is the one a step is timed by."""

_EXAMPLES = (
    DecisionKind.CHANGE_PARTITIONS,
    DecisionKind.STOP_REPLICAS,
    DecisionKind.CREATE_TOPIC,
    DecisionKind.UPDATE_BROKERS,
)
"""Kinds of which a step's example is taken when no leader moved: the last of the first kind."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in each of the logs: their ends at one moment."""

    events: int
    decisions: int
    outcomes: int


@dataclass(frozen=True, slots=True)
class Timing:
    """From an event's append to its decisions in ZooKeeper, and to the last broker's answer.

    answered: the brokers that have answered everything that followed from the event so far.
    """

    written_ms: int
    answered_ms: int | None
    answered: frozenset[int]


@dataclass(frozen=True, slots=True)
class Report:
    """decisions: how many of each kind, rows of a block counted one by one; example: one in words;
    timing: None when the step's event is not there, or nothing came of it yet.
    """

    decisions: Mapping[str, int]
    example: str | None
    timing: Timing | None


class Journal:
    """Reads the logs of a data folder that others write; what is not there yet counts as empty."""

    def __init__(self, folders: DataDir) -> None:
        """Remember the folder."""
        self._events = _Log(folders.events)
        self._decisions = _Log(folders.decisions)
        self._outcomes = _Log(folders.outcomes)

    def mark(self) -> Mark:
        """Return where the logs end now."""
        return Mark(self._events.end(), self._decisions.end(), self._outcomes.end())

    def report(self, since: Mark, is_event: IsEvent | None) -> Report:
        """Return what happened since a mark."""
        decisions = self._decisions.since(since.decisions)
        counts: Counter[str] = Counter()
        for record in decisions:
            counts[record.kind] += count_of(record)
        timing = None if is_event is None else self._timing(since, is_event)
        return Report(dict(counts), _example(decisions), timing)

    def last_sentences(self, count: int) -> list[str]:
        """Return the last decisions in words, the latest last."""
        start = max(self._decisions.end() - count, 0)
        return [sentence(record) for record in self._decisions.since(start)]

    def batch_ends(self, since: Mark) -> list[int]:
        """Return where the batches ended that went through the sinks since a mark."""
        outcomes = self._outcomes.since(since.outcomes)
        return [
            orjson.loads(one.payload)["end_offset"] for one in outcomes if one.kind == "persisted"
        ]

    def last_end(self) -> int:
        """Return where the last batch ended that went through, 0 before the first."""
        return max(self.batch_ends(Mark(0, 0, 0)), default=0)

    def _timing(self, since: Mark, is_event: IsEvent) -> Timing | None:
        events = self._events.since(since.events)
        matching = (one for one in events if is_event(one.kind, orjson.loads(one.payload)))
        event = next(matching, None)
        if event is None:
            return None
        outcomes = self._outcomes.since(since.outcomes)
        bodies = [(one.kind, orjson.loads(one.payload)) for one in outcomes]
        # A claim may be folded in a batch of its own, and be decided with what it then finds.
        decided = [body for kind, body in bodies if kind == "persisted" and body["decisions"]]
        batch = next((body for body in decided if body["end_offset"] > event.offset), None)
        if batch is None:
            return None
        answered = {
            body["broker_id"]: body["at_ms"]
            for kind, body in bodies
            if kind == "confirmed" and body["end_offset"] == batch["end_offset"]
        }
        return Timing(
            batch["written_at_ms"] - event.time_ms,
            max(answered.values()) - event.time_ms if answered else None,
            frozenset(answered),
        )


class _Log:
    """One log, opened when it is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader: EmbeddedLogReader | None = None

    def end(self) -> int:
        reader = self._open()
        return 0 if reader is None else reader.end_offset()

    def since(self, start: int) -> list[LogRecord]:
        reader = self._open()
        if reader is None:
            return []
        return list(reader.read(max(start, reader.start_offset()), reader.end_offset()))

    def _open(self) -> EmbeddedLogReader | None:
        if self._reader is None:
            try:
                self._reader = EmbeddedLogReader(self._folder)
            except LogError:
                return None
        return self._reader


def _example(decisions: list[LogRecord]) -> str | None:
    changes = [one for one in decisions if one.kind == DecisionKind.CHANGE_PARTITIONS]
    moved = next((text for one in changes for text in leader_changes(one)), None)
    if moved is not None:
        return moved
    for kind in _EXAMPLES:
        for record in reversed(decisions):
            if record.kind == kind:
                return sentence(record)
    return None
