"""`helmstream kraft-snapshot`: what ZooKeeper has, for a KRaft controller to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streaming.commands.options import ConfigFiles, Overrides, outside_settings
from streaming.commands.output import table_console, table_of
from streaming.process.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from streaming.kraft_snapshot.run import Written


def kraft_snapshot(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Where a KRaft controller has its metadata log: its metadata.log.dir, or the first"
            " of its log.dirs, after kafka-storage has formatted it; or a new folder.",
        ),
    ],
    *,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="The cluster to read."),
    ] = None,
    broker_configs: Annotated[
        list[Path] | None,
        typer.Option(
            "--broker-config",
            metavar="FILE",
            help="The properties that a broker is started with: its password.encoder.secret decodes"
            " passwords that are kept in ZooKeeper. May be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line instead of a table.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
) -> None:
    """Write what ZooKeeper has of a cluster as the snapshot of a KRaft metadata log.

    A KRaft controller that starts with it has the same topics, leaders, configurations, quotas,
    users, access control lists and tokens. Changes nothing, in ZooKeeper and at brokers. Exit code
    6 when something had to be left out.
    """
    from streaming.kraft_snapshot.run import secrets_of, write_kraft_snapshot
    from streaming.shadow.exit_codes import exit_code

    settings = outside_settings(config, zookeeper, overrides)
    secrets = secrets_of(broker_configs or ())
    written = write_kraft_snapshot(settings, folder, wall_clock_ms(), secrets)
    if as_json:
        typer.echo(orjson.dumps(_row(written) | {"gaps": written.gaps}).decode())
    else:
        _print_table(written)
    raise typer.Exit(exit_code(0, written.gaps))


def _row(written: Written) -> dict[str, object]:
    return {
        "path": str(written.path),
        "topics": written.topics,
        "partitions": written.partitions,
        "others": written.others,
        "running_brokers": written.running_brokers,
    }


def _print_table(written: Written) -> None:
    console = table_console()
    console.print(table_of([_row(written)], whole=True))
    if written.running_brokers:
        console.print("brokers are running: what changes from now on is not in it")
    for gap in written.gaps:
        console.print(f"left out: {gap}", markup=False, soft_wrap=True)
