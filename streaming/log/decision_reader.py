"""Decisions out of a decision log, each once, whatever was written twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from state.decisions import DecisionKind
from state.merge import MergedDecision
from streaming.log.api import LogRecord
from streaming.log.decision_writer import RecordId, record_id
from streaming.log.location import LogLocation
from streaming.log.recorded import open_recorded

_KINDS = frozenset(map(str, DecisionKind))


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision with the time of its event in ms."""

    time_ms: int
    decision: MergedDecision

    @property
    def id(self) -> RecordId:
        """(event offset, ordinal)."""
        return RecordId(self.decision.offset, self.decision.ordinal)


def each_once(records: Iterable[LogRecord], after: RecordId | None = None) -> Iterator[LogRecord]:
    """Yield the records whose id is above all before it: ids rise through a decision log, so one
    that does not is a second copy.

    after: the last id that was handled, of a reader that goes on. Raises LogError when a key is
    not an id.
    """
    last = after
    for record in records:
        found = record_id(record)
        if last is None or found > last:
            last = found
            yield record


def read_decisions(records: Iterable[LogRecord]) -> Iterator[LoggedDecision]:
    """Yield the decisions of a decision log, each once; those of kinds that another version has
    added are passed over (docs/decision-log.md).

    Raises LogError when a key is no id.
    """
    for record in each_once(records):
        if record.kind not in _KINDS:
            continue
        found = record_id(record)
        yield LoggedDecision(
            record.time_ms,
            MergedDecision(
                found.event_offset, found.ordinal, DecisionKind(record.kind), record.payload
            ),
        )


class OpenDecisions:
    """A decision log by where it is: a data folder, a replay's, the log's own, JSON lines, a topic.

    Raises NoRecordedLog or LogError when it is none.
    """

    def __init__(self, where: LogLocation) -> None:
        """Open it."""
        self._log = open_recorded(where, "decisions")

    def decisions(self) -> Iterator[MergedDecision]:
        """Yield all that is there now, each decision once."""
        records = self._log.read(self._log.start_offset(), self._log.end_offset())
        return (one.decision for one in read_decisions(records))

    def ends(self) -> tuple[RecordId, RecordId] | None:
        """Return the ids of the first and the last record; None of an empty log."""
        first, end = self._log.start_offset(), self._log.end_offset()
        if first == end:
            return None
        found = [record_id(one) for at in (first, end - 1) for one in self._log.read(at, at + 1)]
        return found[0], found[1]

    def __enter__(self) -> OpenDecisions:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
