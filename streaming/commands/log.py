"""`helmstream log`: recorded logs as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streaming.commands.replay import Until

app = typer.Typer(help="Work with recorded logs.", no_args_is_help=True)


@app.callback()
def log() -> None:
    """Work with recorded logs."""


@app.command("export")
def export(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="A data folder, or the folder of a log.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the JSON lines go.")],
    start: Annotated[
        int | None, typer.Option("--from", metavar="OFFSET", min=0, help="First offset to export.")
    ] = None,
    until: Until = None,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="The decision log of a data folder.")
    ] = False,
) -> None:
    """Write a log as JSON lines, from which it can be read back byte for byte."""
    from streaming.log.json_lines import write_json_lines
    from streaming.log.recorded import end_of, open_recorded

    reader = open_recorded(log, "decisions" if decisions else "events")
    try:
        first = reader.start_offset() if start is None else start
        with file.open("w", encoding="utf-8") as out:
            count = write_json_lines(reader.read(first, end_of(reader, until)), out)
    finally:
        reader.close()
    Console(highlight=False).print(f"{count} records in {file}", soft_wrap=True)
