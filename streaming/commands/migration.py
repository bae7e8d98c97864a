"""`helmstream migration`: what would keep a cluster from being migrated to KRaft."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streaming.commands.options import ConfigFiles, Overrides, outside_settings
from streaming.commands.output import table_console, table_of

if TYPE_CHECKING:
    from streaming.migration.findings import Finding
    from streaming.migration.run import Found

_BEGUN = "the migration has begun: a KRaft controller controls the cluster"


def migration(
    *,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="The cluster to look at."),
    ] = None,
    controllers: Annotated[
        list[Path] | None,
        typer.Option(
            "--controller-config",
            metavar="FILE",
            help="A KRaft controller's file of properties, to be looked at as well; may be given"
            " several times.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each finding as a JSON line instead.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
) -> None:
    """Say what would keep a cluster from being migrated to KRaft, and what would be lost by it.

    Under any controller; changes nothing, in ZooKeeper and at brokers. Exit code 0 when there is
    nothing but what is to be done for it anyway, 5 when something stops it or is changed by it, 6
    when not everything could be looked at.
    """
    from streaming.migration.findings import Weight
    from streaming.migration.run import look
    from streaming.shadow.exit_codes import exit_code

    found = look(outside_settings(config, zookeeper, overrides), controllers or ())
    if as_json:
        _print_json(found)
    else:
        _print_table(found)
    grave = len(found.findings) - len(found.of(Weight.TO_DO))
    raise typer.Exit(exit_code(grave, found.gaps))


def _print_json(found: Found) -> None:
    summary = {"findings": len(found.findings), "gaps": found.gaps, "begun": found.begun}
    for line in (*map(_fields, found.findings), {"summary": summary}):
        typer.echo(orjson.dumps(line).decode())


def _fields(one: Finding) -> dict[str, str]:
    return {"weight": one.weight.value, "where": one.where, "what": one.what, "remedy": one.remedy}


def _print_table(found: Found) -> None:
    console = table_console()
    if found.begun:
        console.print(_BEGUN)
    rows = [_fields(one) for one in found.findings]
    console.print(table_of(rows, whole=True) if rows else "nothing was found")
    for gap in found.gaps:
        console.print(f"not looked at: {gap}", markup=False, soft_wrap=True)
