"""The command `helmstream`: puts the commands together and runs one in the error frame."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from streaming.commands import checkpoint, log
from streaming.commands.control import allow_shutdown, pause, resume
from streaming.commands.demo import demo
from streaming.commands.diff import diff
from streaming.commands.explain import explain
from streaming.commands.frame import run_framed
from streaming.commands.kraft_snapshot import kraft_snapshot
from streaming.commands.migration import migration
from streaming.commands.prepare import prepare
from streaming.commands.rehearse import rehearse
from streaming.commands.replay import replay
from streaming.commands.roles import front, job, run
from streaming.commands.shadow import shadow
from streaming.commands.state import state
from streaming.commands.status import status
from streaming.commands.tap import tap
from streaming.commands.verify import verify

app = typer.Typer(
    name="helmstream",
    help="Kafka's controller as a replayable Spark Structured Streaming job.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(run)
app.command()(prepare)
app.command()(front)
app.command()(job)
app.command()(status)
app.command()(pause)
app.command()(resume)
app.command()(allow_shutdown)
app.command()(tap)
app.command()(explain)
app.command()(shadow)
app.command()(verify)
app.command()(migration)
app.command()(kraft_snapshot)
app.command()(replay)
app.command()(diff)
app.command()(rehearse)
app.command()(state)
app.add_typer(log.app, name="log")
app.add_typer(checkpoint.app, name="checkpoint")


def _print_version(wanted: bool) -> None:
    if wanted:
        Console().out(f"helmstream {version('helmstream')}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Kafka's controller as a replayable Spark Structured Streaming job."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code."""
    console = Console(stderr=True)
    given = None if arguments is None else list(arguments)
    sys.exit(run_framed(lambda: app(given, prog_name="helmstream"), console))


if __name__ == "__main__":
    main()
