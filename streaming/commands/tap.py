"""`helmstream tap`: one of the logs as JSON lines, a downstream consumer's door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from enum import StrEnum
from typing import Annotated

import typer

from state.opened_decisions import open_body
from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.errors import ConfigurationError
from streaming.explain.state_change_log import StateChangeLog
from streaming.log.api import LogReader, LogRecord
from streaming.log.decision_reader import each_once
from streaming.log.decision_writer import RecordId, record_id
from streaming.log.location import URL_FORM, KafkaTopic, LogLocation, log_location
from streaming.log.recorded import open_log, open_recorded
from streaming.log.tap import (
    CANNOT_BE_OPENED,
    OpenPayload,
    follow,
    open_json,
    to_json_line,
    why_not,
)
from streaming.paths import DataDir
from streaming.settings import Settings


class Log(StrEnum):
    """The logs of a data folder, by the name of their folder in it."""

    EVENTS = "events"
    DECISIONS = "decisions"
    OUTCOMES = "outcomes"


def open_decision(record: LogRecord) -> object:
    """A decision: its JSON object, or one object per row of its block."""
    return open_body(record.kind, record.payload)


OPENERS: Mapping[Log, OpenPayload] = {
    Log.EVENTS: open_json,
    Log.DECISIONS: open_decision,
    Log.OUTCOMES: open_json,
}
"""How the payloads of each log are made readable; one that cannot be opened is shown as base64."""


def tap(
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG",
            help=f"Another log than the data folder's: a folder, or a topic ({URL_FORM}).",
        ),
    ] = None,
    *,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    events: Annotated[
        bool, typer.Option("--events", help="Show the events instead of the decisions.")
    ] = False,
    outcomes: Annotated[
        bool, typer.Option("--outcomes", help="Show the outcomes instead of the decisions.")
    ] = False,
    state_changes: Annotated[
        bool,
        typer.Option(
            "--state-changes",
            help="Show what the decisions do to partitions, as a broker's state-change.log does.",
        ),
    ] = False,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="OFFSET",
            help="First offset to show, or: start (the oldest retained), end (only what is new).",
        ),
    ] = "start",
    go_on: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for new records, or stop at the end.")
    ] = True,
    poll_ms: Annotated[
        int, typer.Option("--poll-ms", min=1, help="Pause between looks for new records.")
    ] = 100,
) -> None:
    """Print the decision log as JSON lines, one record each, or as lines of a state-change.log.

    To resume later, start --from the offset after the last one you handled. A decision that a topic
    has twice is shown once.
    """
    settings = settings_from(config, overrides, data_dir)
    name = chosen_log(events, outcomes, state_changes)
    where = log_location(log) if log else of_settings(settings, name)
    opened = open_recorded(where, name) if log else open_log(where)
    with closing(opened) as reader:
        first = first_offset(reader, start)
        shown = records(reader, first, go_on, poll_ms)
        if name is Log.DECISIONS and isinstance(where, KafkaTopic):
            shown = each_once(shown, after=last_before(reader, first))
        lines = as_state_changes(shown, settings) if state_changes else as_json(shown, name)
        for line in lines:
            typer.echo(line)


def as_json(shown: Iterable[LogRecord], name: Log) -> Iterator[str]:
    """Yield a line for each record."""
    return (to_json_line(record, OPENERS[name]) for record in shown)


def as_state_changes(shown: Iterable[LogRecord], settings: Settings) -> Iterator[str]:
    """Yield the lines of each decision; of one that cannot be opened, a line that says so."""
    log = StateChangeLog(settings.controller_id)
    for record in shown:
        try:
            yield from log.lines(record)
        except CANNOT_BE_OPENED as error:
            yield log.line(record, "WARN", f"{record.kind} {record.key}: {why_not(error)}")


def of_settings(settings: Settings, name: Log) -> LogLocation:
    """Where a log is of the helmstream with these settings."""
    if name is Log.EVENTS:
        return DataDir(settings.data_dir, settings.event_log_url).event_log
    return settings.data_dir / name


def chosen_log(events: bool, outcomes: bool, state_changes: bool) -> Log:
    """The log that the options ask for; raises ConfigurationError when they ask for two."""
    if events and outcomes:
        raise ConfigurationError("--events and --outcomes are two logs: tap each by itself")
    if state_changes and (events or outcomes):
        raise ConfigurationError("--state-changes shows decisions: leave --events, --outcomes out")
    return Log.EVENTS if events else Log.OUTCOMES if outcomes else Log.DECISIONS


def first_offset(reader: LogReader, start: str) -> int:
    """The offset that `--from` means; raises ConfigurationError when it means none."""
    if start == "start":
        return reader.start_offset()
    if start == "end":
        return reader.end_offset()
    if start.isdecimal():
        return int(start)
    raise ConfigurationError(f"--from {start!r}: allowed are an offset, start, end")


def last_before(reader: LogReader, first: int) -> RecordId | None:
    """The id at the offset before `first`, which whoever goes on there has handled; None when it is
    not retained. Copies of it and of earlier decisions may follow.
    """
    if not reader.start_offset() < first <= reader.end_offset():
        return None
    return record_id(next(iter(reader.read(first - 1, first))))


def records(reader: LogReader, first: int, go_on: bool, poll_ms: int) -> Iterator[LogRecord]:
    """Records from `first` on: what there is now, or without end."""
    if go_on:
        return follow(reader, first, lambda: False, poll_ms)
    return reader.read(first, max(first, reader.end_offset()))
