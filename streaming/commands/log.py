"""`helmstream log`: recorded logs as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from streaming.commands.options import LogArgument
from streaming.commands.replay import Until
from streaming.errors import ConfigurationError
from streaming.log.location import URL_FORM, log_location, topic_of

if TYPE_CHECKING:
    from streaming.log.api import LogRecord

Decisions = Annotated[bool, typer.Option("--decisions", help="The decision log of a data folder.")]
TopicUrl = Annotated[str, typer.Argument(metavar="URL", help=URL_FORM)]

app = typer.Typer(help="Work with recorded logs.", no_args_is_help=True)


@app.callback()
def log() -> None:
    """Work with recorded logs."""


@app.command("export")
def export(
    log: LogArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the JSON lines go.")],
    start: Annotated[
        int | None, typer.Option("--from", metavar="OFFSET", min=0, help="First offset to export.")
    ] = None,
    until: Until = None,
    decisions: Decisions = False,
) -> None:
    """Write a log as JSON lines, from which it can be read back byte for byte."""
    from streaming.log.recorded import end_of, open_recorded

    reader = open_recorded(log_location(log), "decisions" if decisions else "events")
    try:
        first = reader.start_offset() if start is None else start
        end = end_of(reader, until)
        if first > end:
            raise ConfigurationError(f"--from {first} is after the end, which is offset {end}")
        records = reader.read(first, end)
        count = _write(records, file)
    finally:
        reader.close()
    Console(highlight=False).print(f"{count} records in {file}", soft_wrap=True, markup=False)


def _write(records: Iterable[LogRecord], file: Path) -> int:
    """Write records as JSON lines and return how many; a file is replaced once all are there."""
    from checkpoints.durable import naming, write_whole_by
    from streaming.log.json_lines import write_json_lines

    counts: list[int] = []

    def write(path: Path) -> None:
        with naming(path), path.open("w", encoding="utf-8") as out:
            counts.append(write_json_lines(records, out))

    # A pipe, a device, and /dev/stdout wherever it leads, are written to and not replaced.
    is_link = file.is_symlink()
    is_stream = is_link and file.absolute().parts[1] in {"dev", "proc"}
    if is_stream or (file.exists() and not file.is_file()):
        write(file)
    else:
        write_whole_by(file.resolve() if is_link else file, write)
    return counts[0]


@app.command("create")
def create(
    url: TopicUrl,
    replication_factor: Annotated[
        int,
        typer.Option("--replication-factor", min=-1, help="-1 is the log cluster's default."),
    ] = -1,
) -> None:
    """Make a topic that can hold a log: one partition, records stay until they are let go of."""
    from streaming.log.kafka_topic import create_topic

    create_topic(topic_of(url), replication_factor)
    Console(highlight=False).print(f"{url} can hold a log", soft_wrap=True, markup=False)


@app.command("copy")
def copy(log: LogArgument, url: TopicUrl, decisions: Decisions = False) -> None:
    """Copy a log into a topic, with offsets and times; one that was interrupted goes on.

    Nothing else may write to the topic meanwhile.
    """
    from streaming.log.copying import copy_records
    from streaming.log.kafka_writer import KafkaLogWriter
    from streaming.log.recorded import open_recorded

    reader = open_recorded(log_location(log), "decisions" if decisions else "events")
    try:
        with KafkaLogWriter(topic_of(url)) as writer:
            count = copy_records(reader, writer)
    finally:
        reader.close()
    Console(highlight=False).print(f"{count} records copied to {url}", soft_wrap=True, markup=False)
