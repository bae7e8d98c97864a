"""`helmstream run`, and the two roles it supervises: `helmstream front` and `helmstream job`."""

from __future__ import annotations

import logging
from typing import Annotated

import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, DataDir, Overrides, settings_from

ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT",
        help="The cluster to control; without it an embedded one is started.",
    ),
]


def run(
    zookeeper: ZooKeeper = None,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDir = None,
) -> None:
    """Control a cluster until Ctrl-C: runs and supervises the front and the job."""
    from streaming.supervisor.run import run as supervise

    given = [*(overrides or ()), *([f"zookeeper.connect={zookeeper}"] if zookeeper else ())]
    settings = settings_from(config, given, data_dir)
    options = [f"--config={file}" for file in config or ()] + [f"--set={one}" for one in given]
    supervise(settings, options, Console())


def front(
    config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDir = None
) -> None:
    """Be the front alone: event log, controller role, observers, gateway."""
    from streaming.front.main import run_front

    _log_to_stderr()
    raise typer.Exit(run_front(settings_from(config, overrides, data_dir)))


def job(config: ConfigFiles = None, overrides: Overrides = None, data_dir: DataDir = None) -> None:
    """Be the job alone: the streaming query and its sinks."""
    from streaming.job import run_job

    _log_to_stderr()
    raise typer.Exit(run_job(settings_from(config, overrides, data_dir)))


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
