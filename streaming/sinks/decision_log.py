"""The decision log as the job opens it."""

from __future__ import annotations

from contextlib import closing

from streaming.errors import ConfigurationError
from streaming.log.decision_writer import IdempotentLogWriter, RecordId
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.recorded import awaited_end, open_if_made
from streaming.paths import DataDir

_WITHOUT_IT = (
    "move the folder aside: what was decided before is then missing for who reads it, and in what"
    " brokers that are away have to be told"
)


def open_decisions(folders: DataDir) -> tuple[EmbeddedLogWriter, IdempotentLogWriter]:
    """Open the decision log, and what writes each decision into it once.

    Raises LogLocked, CorruptLog, and ConfigurationError when it is about another event log.
    """
    log = EmbeddedLogWriter(folders.decisions, without_it=_WITHOUT_IT)
    try:
        writer = IdempotentLogWriter(log, EmbeddedLogReader(folders.decisions))
        if writer.last_id is not None:
            _check_decided(folders, writer.last_id)
    except BaseException:
        log.close()
        raise
    return log, writer


def _check_decided(folders: DataDir, last: RecordId) -> None:
    """Raise ConfigurationError when decisions are there about events that are not: whatever is
    decided up to there would be taken for what is in the log already.
    """
    end = 0
    if (events := open_if_made(folders.event_log)) is not None:
        with closing(events):
            end = awaited_end(events, last.event_offset + 1)
    if last.event_offset >= end:
        raise ConfigurationError(
            f"{folders.decisions} has a decision about event {last.event_offset}, the log"
            f" {folders.event_log} ends at {end}: it is another one, or has lost a part; move"
            f" {folders.decisions} aside to begin a new decision log"
        )
