"""`helmstream run`, and the two roles it supervises: `helmstream front` and `helmstream job`."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streaming.commands.options import (
    ConfigFiles,
    DataDirOption,
    Overrides,
    naming_cluster,
    settings_from,
)
from streaming.errors import ConfigurationError
from streaming.front.addresses import check_announced_host
from streaming.preflight import check_data_dir
from streaming.settings import Settings

_INSTEAD = {
    "replay": "; to fold a recorded log again: helmstream replay LOG --out FOLDER",
    "shadow": "; to watch a live cluster: helmstream shadow --zookeeper HOST:PORT"
    " --data-dir FOLDER",
}
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT",
        help="The cluster to control; without it an embedded one is started.",
    ),
]
Standby = Annotated[
    bool,
    typer.Option(
        "--standby",
        help="Wait, ready to take over, while another one uses the data folder.",
    ),
]


def run(
    zookeeper: ZooKeeper = None,
    standby: Standby = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Control a cluster until Ctrl-C: runs and supervises the front and the job."""
    from streaming.supervisor.run import run as supervise

    given = naming_cluster(zookeeper, overrides)
    settings = active_settings(config, given, data_dir)
    if settings.zookeeper_connect:  # an embedded cluster is on loopback, and so are we then
        check_announced_host(settings)
    options = [f"--config={file}" for file in config or ()] + [f"--set={one}" for one in given]
    supervise(settings, options, Console(), standby=standby)


def front(
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    standby: Standby = False,
) -> None:
    """Be the front alone: event log, controller role, observers, gateway."""
    from streaming.front.main import run_front

    settings = _role_settings(config, overrides, data_dir)
    _log_to_stderr()
    raise typer.Exit(run_front(settings, standby=standby))


def job(
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    standby: Standby = False,
) -> None:
    """Be the job alone: the streaming query and its sinks."""
    settings = _role_settings(config, overrides, data_dir)
    _log_to_stderr()
    os.nice(settings.job_nice)  # what it starts inherits that
    from streaming.spark.jvm import start_jvm

    start_jvm(settings)  # it goes on while the rest is imported
    from streaming.job import run_job

    raise typer.Exit(run_job(settings, standby=standby))


def active_settings(
    config: Sequence[Path] | None, overrides: Sequence[str] | None, data_dir: Path | None
) -> Settings:
    """Settings of a process that decides, whose other processes may work in folders of their own;
    raises ConfigurationError for another mode, or a data folder that cannot be one.
    """
    found = settings_from(config, overrides, data_dir)
    settings = found.model_copy(update={"data_dir": found.data_dir.absolute()})
    if settings.mode != "active":
        raise ConfigurationError(
            f"mode is {settings.mode!r}: these processes can only be 'active'"
            f"{_INSTEAD.get(settings.mode, '')}"
        )
    check_data_dir(settings.data_dir)
    return settings


def _role_settings(
    config: Sequence[Path] | None, overrides: Sequence[str] | None, data_dir: Path | None
) -> Settings:
    settings = active_settings(config, overrides, data_dir)
    if not settings.zookeeper_connect:
        raise ConfigurationError(
            "zookeeper.connect is empty, and a front or a job alone starts no cluster: set it to"
            " the cluster to control, host:port[,host:port...][/chroot]"
        )
    check_announced_host(settings)
    return settings


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    logging.getLogger("kafka").setLevel(logging.WARNING)
