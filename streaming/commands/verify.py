"""`helmstream verify`: compare what every broker knows and has with ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, Overrides, outside_settings
from streaming.commands.output import table_console, table_of

if TYPE_CHECKING:
    from streaming.verification.differences import Difference, Value
    from streaming.verification.looks import Found


def verify(
    *,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="The cluster to look at."),
    ] = None,
    settle_s: Annotated[
        float,
        typer.Option(
            "--settle",
            metavar="SECONDS",
            min=0,
            help="For how long something has to differ; brokers hear of a change after ZooKeeper"
            " has it.",
        ),
    ] = 10,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Most differences to print; 0 for all.")
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each difference as a JSON line instead.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
) -> None:
    """Compare what every broker knows, and which replicas it has, with ZooKeeper.

    Under any controller; changes nothing, in ZooKeeper and at brokers. Exit code 0 when every
    broker has all as ZooKeeper has it, 5 when something differs, 6 when not everything could be
    compared.
    """
    from streaming.shadow.exit_codes import exit_code
    from streaming.verification.run import run_verification

    settings = outside_settings(config, zookeeper, overrides)
    found = run_verification(settings, settle_s)
    if as_json:
        _print_json(found)
    else:
        _print_tables(table_console(), found, limit)
    raise typer.Exit(exit_code(len(found.differences), found.gaps))


def _print_json(found: Found) -> None:
    brokers = [_counts(found, id_) for id_ in sorted(found.asked)]
    summary = {"brokers": brokers, "differences": len(found.differences), "gaps": found.gaps}
    for line in (*map(_fields, found.differences), {"summary": summary}):
        typer.echo(orjson.dumps(line).decode())


def _fields(one: Difference) -> dict[str, Value]:
    return {
        "broker": one.subject.broker,
        "matter": one.subject.matter.value,
        "topic": one.subject.topic,
        "partition": one.subject.partition,
        "zookeeper": one.zookeeper,
        "broker_has": one.broker,
    }


def _counts(found: Found, id_: int) -> dict[str, int]:
    one = found.asked[id_]
    return {
        "broker": id_,
        "topics": one.topics,
        "partitions": one.partitions,
        "replicas": one.replicas,
        "differences": len(found.confirmed[id_]),
    }


def _print_tables(console: Console, found: Found, limit: int) -> None:
    console.print(table_of([_counts(found, id_) for id_ in sorted(found.asked)]))
    shown = found.differences[: limit or None]
    if shown:
        console.print()
        console.print(table_of([_fields(one) for one in shown]))
    if rest := len(found.differences) - len(shown):
        console.print(f"and {rest} more (--limit 0)")
    for gap in found.gaps:
        console.print(f"not compared: {gap}", markup=False, soft_wrap=True)
