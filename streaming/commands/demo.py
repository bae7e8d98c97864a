"""`helmstream demo`: three real brokers under one Spark query, through crashes of both."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, Overrides, settings_from


def demo(
    config: ConfigFiles = None,
    overrides: Overrides = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folder with all logs and data at the end.")
    ] = False,
) -> None:
    """Control three real Kafka brokers through crashes of theirs and ours, and tell the story.

    Needs nothing but Java; everything is stopped at the end. Exit code 0 only when every step was
    seen and nothing that was acked is lost.
    """
    from streaming.demo.main import run_demo

    settings_from(config, overrides)  # refuses what is wrong before anything starts
    options = [f"--config={file}" for file in config or ()]
    options += [f"--set={one}" for one in overrides or ()]
    raise typer.Exit(run_demo(options, Console(), keep=keep))
