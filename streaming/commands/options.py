"""Options that several commands share, and the settings they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from streaming.errors import ConfigurationError
from streaming.log.location import URL_FORM
from streaming.settings import Settings
from streaming.settings_loader import load_settings

ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="TOML file with settings; may be given several times, a later one wins.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="One setting, such as controller.lease.ms=20000; wins over files and environment.",
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="FOLDER",
        help="Folder with the logs and the checkpoint; short for --set data.dir=FOLDER.",
    ),
]

LogArgument = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A data folder, the folder of a log, a file of JSON lines (log export),"
        f" or a topic: {URL_FORM}",
    ),
]


def settings_from(
    config: Sequence[Path] | None, overrides: Sequence[str] | None, data_dir: Path | None = None
) -> Settings:
    """Settings from the shared options; raises ConfigurationError."""
    given = [*(overrides or ())]
    if data_dir is not None:
        given.append(f"data.dir={data_dir}")
    return load_settings(config or (), given)


def naming_cluster(zookeeper: str | None, overrides: Sequence[str] | None) -> list[str]:
    """Return `--set` options with the cluster that `--zookeeper` names, if it is given.

    Raises ConfigurationError when it names none: a variable in a unit file was not set, and no
    other cluster is meant by that.
    """
    given = [*(overrides or ())]
    if zookeeper is None:
        return given
    if not zookeeper.strip():
        raise ConfigurationError(
            "--zookeeper names no cluster: give it HOST:PORT, or leave the option out"
        )
    return [*given, f"zookeeper.connect={zookeeper}"]


def outside_settings(
    config: Sequence[Path] | None,
    zookeeper: str | None,
    overrides: Sequence[str] | None,
    data_dir: Path | None = None,
) -> Settings:
    """Settings of a command that looks at a cluster from outside; raises ConfigurationError, also
    where none is named.
    """
    settings = settings_from(config, naming_cluster(zookeeper, overrides), data_dir)
    if not settings.zookeeper_connect:
        raise ConfigurationError("no cluster is named: give --zookeeper HOST:PORT")
    return settings
