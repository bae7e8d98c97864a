"""`python -m streaming.front`: the front alone, as the supervisor starts it."""

from __future__ import annotations

import logging
import sys

import typer
from rich.console import Console

from streaming.commands.frame import run_framed
from streaming.commands.options import ConfigFiles, DataDir, Overrides, settings_from
from streaming.front.main import run_front


def front(
    config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDir = None
) -> None:
    """Hold the controller role and the event log for the job that connects to link.sock."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    raise typer.Exit(run_front(settings_from(config, overrides, data_dir)))


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(front)
    sys.exit(run_framed(app, Console(stderr=True)))
