"""`helmstream checkpoint`: look at a checkpoint, move it, make it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.commands.output import table_console
from streaming.commands.spark import LazySpark

app = typer.Typer(help="Look at a checkpoint, move it, make it anew.", no_args_is_help=True)
_PASSED = {True: ("ok", "green"), False: ("wrong", "bold red"), None: ("not checked", "yellow")}


@app.callback()
def checkpoint() -> None:
    """Look at a checkpoint, move it, make it anew."""


@app.command()
def verify(
    config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDirOption = None
) -> None:
    """Check files, machines and event log, and fold the retained events again.

    Exit code 0 when nothing is wrong, 1 when something is or cannot be read, 2 when there is none.
    """
    from streaming.checkpoint_tools.check import verify_checkpoint
    from streaming.checkpoint_tools.snapshots import checkpoint_at
    from streaming.paths import DataDir

    settings = settings_from(config, overrides, data_dir)
    folders = DataDir(settings.data_dir, settings.event_log_url)
    checkpoint_at(folders.checkpoint)
    with LazySpark(settings) as spark:
        checks = verify_checkpoint(spark(), folders)
    table = Table("check", "result", "found", box=None, header_style="bold")
    for check in checks:
        table.add_row(check.what, Text(*_PASSED[check.passed]), Text(check.found))
    table_console().print(table)
    raise typer.Exit(1 if any(check.passed is False for check in checks) else 0)


@app.command("export")
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", file_okay=False, help="Where the files go.")
    ],
    batch: Annotated[
        int | None, typer.Option("--batch", min=0, help="As of this batch; the last by default.")
    ] = None,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Write the machines and a table of the partitions as Parquet files; the job may run."""
    from streaming.checkpoint_tools.moves import export_checkpoint
    from streaming.checkpoint_tools.snapshots import load_snapshot

    settings = settings_from(config, overrides, data_dir)
    with LazySpark(settings) as spark:
        snapshot = load_snapshot(settings.data_dir, spark, batch)
    export_checkpoint(snapshot, folder)
    _say(f"{len(snapshot.states)} machines, folded up to {snapshot.offset}, in {folder}")


@app.command("import")
def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FROM", help="What export wrote, a replay's folder, or another checkpoint."
        ),
    ],
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Make the data folder's checkpoint one of these machines, with the settings' slots and
    shuffle.partitions. The job must be stopped, and where there is no checkpoint the front too; the
    checkpoint before is kept beside it.
    """
    _replace(config, overrides, data_dir, source)


@app.command()
def reslot(
    config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDirOption = None
) -> None:
    """Make the checkpoint fit the settings' slots and shuffle.partitions (--set slots=16).

    The job must be stopped; the checkpoint before is kept beside the new one.
    """
    _replace(config, overrides, data_dir, None)


@app.command()
def rebuild(
    config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDirOption = None
) -> None:
    """Make the checkpoint anew out of the whole event log. Front and job must be stopped: all its
    events then count as done, and the cluster is loaded with the next start.
    """
    from rich.progress import Progress

    from streaming.checkpoint_tools.moves import (
        check_log_made,
        fold_whole_log,
        front_stopped,
        job_stopped,
        replace_checkpoint,
    )
    from streaming.paths import DataDir
    from streaming.preflight import check_writable

    settings = settings_from(config, overrides, data_dir)
    folders = DataDir(settings.data_dir, settings.event_log_url)
    check_writable(folders.root)
    check_log_made(folders)
    with LazySpark(settings) as spark, job_stopped(folders), front_stopped(folders):
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("folding", total=None)
            snapshot = fold_whole_log(
                folders,
                settings,
                lambda folded, end: bar.update(task, completed=folded, total=end),
            )
        kept = replace_checkpoint(spark(), settings, folders, snapshot)
    _say_replaced(kept, snapshot.offset)


def _replace(
    config: ConfigFiles, overrides: Overrides, data_dir: DataDirOption, source: Path | None
) -> None:
    from streaming.checkpoint_tools.moves import (
        check_log_made,
        front_stopped_unless_known,
        job_stopped,
        replace_checkpoint,
    )
    from streaming.checkpoint_tools.snapshots import check_machines_at, load_snapshot
    from streaming.paths import DataDir
    from streaming.preflight import check_writable

    settings = settings_from(config, overrides, data_dir)
    folders = DataDir(settings.data_dir, settings.event_log_url)
    check_writable(folders.root)
    machines = source or settings.data_dir
    check_machines_at(machines)
    check_log_made(folders)
    known = front_stopped_unless_known(folders)
    with LazySpark(settings) as spark, job_stopped(folders), known:
        snapshot = load_snapshot(machines, spark)
        kept = replace_checkpoint(spark(), settings, folders, snapshot)
    _say_replaced(kept, snapshot.offset)


def _say_replaced(kept: Path | None, offset: int) -> None:
    _say(f"the new checkpoint goes on from offset {offset}")
    if kept is not None:
        _say(f"the one before is in {kept}: remove it when all is well")


def _say(text: str) -> None:
    Console(highlight=False).print(text, soft_wrap=True)
