"""`helmstream verify`: compare what brokers, or a KRaft quorum, know and have with ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, Overrides, outside_settings
from streaming.commands.output import table_console, table_of

if TYPE_CHECKING:
    from streaming.dual_writes import run as dual_writes
    from streaming.dual_writes.knowledge import Difference as DualDifference
    from streaming.settings import Settings
    from streaming.verification.differences import Difference
    from streaming.verification.looks import Found

_Row = Mapping[str, object]


def verify(
    *,
    zookeeper: Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT", help="The cluster to look at."),
    ] = None,
    metadata_log: Annotated[
        Path | None,
        typer.Option(
            "--metadata-log",
            metavar="FOLDER",
            help="While a cluster migrates to KRaft: compare what a controller has in this folder,"
            " instead of what brokers have.",
        ),
    ] = None,
    settle_s: Annotated[
        float,
        typer.Option(
            "--settle",
            metavar="SECONDS",
            min=0,
            help="For how long something has to differ; brokers hear of a change after ZooKeeper"
            " has it, and ZooKeeper after a KRaft controller.",
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
    """Compare what every broker knows, and which replicas it has, with ZooKeeper; or what a KRaft
    quorum knows to which the cluster migrates.

    Under any controller; changes nothing, in ZooKeeper and at brokers. Exit code 0 when all is as
    ZooKeeper has it, 5 when something differs, 6 when not everything could be compared.
    """
    from streaming.shadow.exit_codes import exit_code

    settings = outside_settings(config, zookeeper, overrides)
    if metadata_log is None:
        told = _of_brokers(settings, settle_s)
    else:
        told = _of_quorum(settings, metadata_log, settle_s)
    if as_json:
        _print_json(told)
    else:
        _print_tables(table_console(), told, limit)
    raise typer.Exit(exit_code(len(told.differences), told.gaps))


@dataclass(frozen=True, slots=True)
class _Told:
    """What is printed: who was compared, and how much of what it has; what differs; what was not
    compared.
    """

    who: str
    compared: Sequence[_Row]
    differences: Sequence[_Row]
    gaps: Sequence[str]


def _of_brokers(settings: Settings, settle_s: float) -> _Told:
    from streaming.verification.run import run_verification

    found = run_verification(settings, settle_s)
    compared = [_counts(found, id_) for id_ in sorted(found.asked)]
    return _Told("brokers", compared, list(map(_fields, found.differences)), found.gaps)


def _of_quorum(settings: Settings, metadata_log: Path, settle_s: float) -> _Told:
    from streaming.dual_writes.run import compare

    found = compare(settings, metadata_log, settle_s)
    compared = [_quorum_counts(found)]
    return _Told("quorum", compared, list(map(_dual_fields, found.differences)), found.gaps)


def _print_json(told: _Told) -> None:
    summary = {
        told.who: told.compared,
        "differences": len(told.differences),
        "gaps": told.gaps,
    }
    for line in (*told.differences, {"summary": summary}):
        typer.echo(orjson.dumps(line).decode())


def _fields(one: Difference) -> _Row:
    return {
        "broker": one.subject.broker,
        "matter": one.subject.matter.value,
        "topic": one.subject.topic,
        "partition": one.subject.partition,
        "zookeeper": one.zookeeper,
        "broker_has": one.broker,
    }


def _dual_fields(one: DualDifference) -> _Row:
    from streaming.dual_writes.knowledge import shown

    return {
        "matter": one.subject.matter.value,
        "name": one.subject.name,
        "what": one.what,
        "zookeeper": shown(one.zookeeper),
        "quorum_has": shown(one.quorum),
    }


def _quorum_counts(found: dual_writes.Found) -> _Row:
    return {
        "offset": found.offset,
        "topics": found.topics,
        "partitions": found.partitions,
        "others": found.others,
        "differences": len(found.differences),
    }


def _counts(found: Found, id_: int) -> _Row:
    one = found.asked[id_]
    return {
        "broker": id_,
        "topics": one.topics,
        "partitions": one.partitions,
        "replicas": one.replicas,
        "differences": len(found.confirmed[id_]),
    }


def _print_tables(console: Console, told: _Told, limit: int) -> None:
    console.print(table_of(told.compared))
    some = told.differences[: limit or None]
    if some:
        console.print()
        console.print(table_of(some))
    if rest := len(told.differences) - len(some):
        console.print(f"and {rest} more (--limit 0)")
    for gap in told.gaps:
        console.print(f"not compared: {gap}", markup=False, soft_wrap=True)
