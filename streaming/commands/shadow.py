"""`helmstream shadow`: decide beside a live cluster, and compare with its own controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streaming.commands.options import (
    ConfigFiles,
    DataDirOption,
    Overrides,
    outside_settings,
)
from streaming.errors import ConfigurationError


def shadow(
    *,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="The cluster to watch."),
    ] = None,
    duration_s: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0.1, help="Stop after this time."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            dir_okay=False,
            help="Where to write what differed as JSON lines, the summary last; by default "
            "shadow-report.jsonl in the data folder.",
        ),
    ] = None,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Write down also what agreed.")
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="Fold in this process instead of through Spark.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Watch a live cluster read-only, decide as if in control, and report what differs.

    Writes no znode and sends nothing to a broker. Exit code 0 when all agreed or is explained in
    docs/differences.md, 5 when something differed, 6 when not everything could be compared.
    """
    from streaming.shadow.run import Options, run_shadow

    settings = outside_settings(config, zookeeper, ["mode=shadow", *(overrides or ())], data_dir)
    if settings.mode != "shadow":
        raise ConfigurationError(f"mode is {settings.mode!r}, this command's is 'shadow'")
    options = Options(local, duration_s, report, all_of_them)
    raise typer.Exit(run_shadow(settings, options, Console()))
