"""`helmstream state`: what the machines hold, as of any retained micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.commands.output import fits, table_console
from streaming.commands.spark import LazySpark
from streaming.errors import ConfigurationError

if TYPE_CHECKING:
    from state.step import Machine

Row = dict[str, Any]
_FIRST = ("partition", "state", "leader", "leader_epoch", "isr", "replicas")
"""What a terminal shows of a topic's partitions when it is too narrow for all of it."""


def state(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC|GROUP] | diff N M",
            help="A topic or a consumer group, to see all of it; or diff and two batches.",
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=0, help="As of this batch; the last by default.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each row as a JSON line instead.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show the machines' content out of the checkpoint, also while the job runs.

    Of a diff the exit code is 0 when nothing changed, 1 when something did.
    """
    from checkpoints.read import retained_batch
    from streaming.checkpoint_tools.snapshots import checkpoint_at

    asked = what or []
    settings = settings_from(config, overrides, data_dir)
    checkpoint = checkpoint_at(settings.data_dir)
    console = table_console()
    is_diff = len(asked) == 3 and asked[0] == "diff"
    if len(asked) > 1 and not is_diff:
        raise ConfigurationError(f"state {' '.join(asked)}: allowed are TOPIC, GROUP, diff N M")
    if is_diff and batch is not None:
        raise ConfigurationError(f"--batch {batch}: not with diff, whose two batches are named")
    batches: list[int | None] = [_number(one) for one in asked[1:]] if is_diff else [batch]
    for one in batches:
        retained_batch(checkpoint, one)  # Spark, which would find out too, takes long to start
    with LazySpark(settings) as spark:
        machines, *later = (_machines(spark, checkpoint, one) for one in batches)
    if is_diff:
        changes = changed_rows(machines, *later)
        _show(console, changes, f"batch {asked[1]} to {asked[2]}", as_json=as_json)
        raise typer.Exit(1 if changes else 0)
    for title, rows in (about(machines, asked[0]) if asked else summary_of(machines)).items():
        _show(console, rows, title, as_json=as_json)


def _machines(spark: LazySpark, checkpoint: Path, batch: int | None) -> dict[int, Machine]:
    from checkpoints.read import read_machines

    return read_machines(spark(), checkpoint, batch)


def _named(key: int, machine: Machine | None) -> dict[str, Row]:
    """Return a machine's partitions and groups by what they are called."""
    from checkpoints.group_table import group_table
    from checkpoints.tables import partition_table

    machines = {} if machine is None else {key: machine}
    partitions = partition_table(machines).to_pylist()
    found = {f"{row['topic']}-{row['partition']}": row for row in partitions}
    return found | {f"group {row['group']}": row for row in group_table(machines)}


def about(machines: Mapping[int, Machine], name: str) -> dict[str, list[Row]]:
    """Return a topic's partitions, and a group with its members and offsets, by title.

    Raises ConfigurationError when there is neither.
    """
    from checkpoints.group_table import each_group
    from checkpoints.tables import partition_table, partitions_of

    found: dict[str, list[Row]] = {}
    partitions = partitions_of(partition_table(machines), name).to_pylist()
    if partitions:
        found[f"topic {name}"] = partitions
    for group in (row for row in each_group(machines) if row["group"] == name):
        lists = {title: group.pop(title) for title in ("members", "offsets")}
        found |= {f"group {name}": [group], **lists}
    if not found:
        raise ConfigurationError(f"no machine has a topic or a group {name!r}")
    return found


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ConfigurationError(f"state diff {text!r}: allowed are numbers of batches")
    return int(text)


def summary_of(machines: Mapping[int, Machine]) -> dict[str, list[Row]]:
    """Return the brokers with their epochs, the topics with counts of their partitions, and the
    groups with counts of their members and offsets.
    """
    from checkpoints.group_table import each_group
    from checkpoints.tables import partition_table, topic_table
    from state.cluster.cluster import Cluster

    clusters = [one for one in machines.values() if isinstance(one, Cluster)]
    brokers = [
        {
            "broker": broker.id,
            "epoch": broker.epoch,
            "rack": broker.rack,
            "shutting_down": broker.id in cluster.brokers.shutting_down,
        }
        for cluster in clusters
        for _, broker in sorted(cluster.brokers.by_id.items())
    ]
    counted = (
        row | {"members": len(row["members"]), "offsets": len(row["offsets"])}
        for row in each_group(machines)
    )
    groups = sorted(counted, key=lambda row: str(row["group"]))
    topics = topic_table(partition_table(machines)).to_pylist()
    return {"brokers": brokers, "topics": topics, "groups": groups}


def changed_rows(before: Mapping[int, Machine], after: Mapping[int, Machine]) -> list[Row]:
    """Return one row for each field that differs; what is only there once is a row of its own."""
    found: list[Row] = []
    for key in before.keys() | after.keys():  # one by one: as rows they are large
        found += _changed(_named(key, before.get(key)), _named(key, after.get(key)))
    return sorted(found, key=lambda row: str(row["what"]))


def _changed(before: Mapping[str, Row], after: Mapping[str, Row]) -> Iterator[Row]:
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            yield {"what": name, "field": "all", "before": one, "after": other}
        else:
            for field in one:
                if one[field] != other[field]:
                    value = {"before": one[field], "after": other[field]}
                    yield {"what": name, "field": field, **value}


def _show(console: Console, rows: list[Row], title: str, *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            console.out(orjson.dumps(row).decode())
        return
    if not rows:
        console.print(f"{title}: nothing")
        return
    table = _table(rows, title, list(rows[0]))
    if not fits(console, table) and rows[0].keys() >= {*_FIRST}:
        table = _table(rows, f"{title} (all columns: --json, or a pipe)", _FIRST)
    console.print(table)


def _table(rows: list[Row], title: str, columns: Sequence[str]) -> Table:
    """Return what is folded, not cropped, where it is too wide."""
    headers = [Column(name, overflow="fold") for name in columns]
    table = Table(*headers, title=title, title_justify="left", box=None, header_style="bold")
    for row in rows:
        table.add_row(*(Text(_text(row[name])) for name in columns))
    return table


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
