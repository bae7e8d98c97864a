"""The decision log that a replay writes, and the digest over it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from checkpoints.replay import Digest
from state.decisions import DecisionKind
from streaming.decided_rows import FoldedBatch
from streaming.errors import ConfigurationError
from streaming.log.api import LogReader, LogRecord
from streaming.log.decision_reader import read_decisions
from streaming.log.decision_writer import (
    IdempotentLogWriter,
    IdentifiedRecord,
    RecordId,
    record_id,
)
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.location import LogLocation
from streaming.log.recorded import open_if_made
from streaming.sinks.outcome_log import OUTCOME_KINDS

_KINDS_OF_NO_EVENT = {*DecisionKind, *OUTCOME_KINDS}

Progress = Callable[[int], None]
"""Called with the offset up to which events are folded."""


class DecisionLog:
    """Takes decisions in batches; what is there already, of a replay that was interrupted, is
    dropped. Use as a context manager. log: what is written, for who cuts it.

    Raises LogLocked when another process writes it.
    """

    def __init__(self, folder: Path) -> None:
        """Open the log, or make it."""
        self.log = EmbeddedLogWriter(folder)
        self._writer = IdempotentLogWriter(self.log, EmbeddedLogReader(folder))

    def append(self, batch: FoldedBatch) -> None:
        """Append a batch's decisions with the times of their events."""
        self._writer.append(
            [
                IdentifiedRecord(
                    RecordId(one.offset, one.ordinal), one.kind, one.body, batch.time_ms[one.offset]
                )
                for one in batch.decisions
            ]
        )

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()


def check_is_of_events(log: LogReader, where: LogLocation) -> None:
    """Raise ConfigurationError when a log begins with a decision, or with what came of one: events
    of unknown kinds are set aside, so it would be folded to its end.
    """
    start = log.start_offset()
    first = next(iter(log.read(start, min(start + 1, log.end_offset()))), None)
    if first is not None and first.kind in _KINDS_OF_NO_EVENT:
        raise ConfigurationError(
            f"{where} is no event log: its first record is {first.kind!r};"
            " a replay takes the events that decisions were made about"
        )


def check_same_log(decisions: Path, events: LogReader) -> None:
    """Raise ConfigurationError when a decision log is about other events than a log has, as far as
    the times of its first and its last decision tell.
    """
    if (decided := open_if_made(decisions)) is None:
        return
    with closing(decided):
        start, end = decided.start_offset(), decided.end_offset()
        places = {start, end - 1} if start < end else ()
        records = [next(iter(decided.read(one, one + 1))) for one in places]
    for record in records:
        if not _may_follow_from(record, events):
            raise ConfigurationError(
                f"{decisions} has decision {record.key} about an event that the log does not have:"
                " it is from a replay of another log; choose another folder"
            )


def _may_follow_from(decision: LogRecord, events: LogReader) -> bool:
    """Return whether a log has the event with its time, or has let go of it."""
    offset = record_id(decision).event_offset
    if offset < events.start_offset():
        return True
    if offset >= events.end_offset():
        return False
    return next(iter(events.read(offset, offset + 1))).time_ms == decision.time_ms


def digest_of(folder: Path) -> Digest:
    """Return the digest over a decision log."""
    digest = Digest()
    with EmbeddedLogReader(folder) as reader:
        records = reader.read(reader.start_offset(), reader.end_offset())
        digest.update(one.decision for one in read_decisions(records))
    return digest
