"""`helmstream rehearse`: what would come of it if brokers failed, stopped and started now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from state.topic_partition import TopicPartition
from streaming.commands.options import DataDirOption, settings_from
from streaming.commands.output import table_console
from streaming.commands.replay import WhatIf
from streaming.commands.spark import LazySpark

if TYPE_CHECKING:
    from checkpoints.snapshot import Snapshot
    from streaming.rehearsal.rehearsal import Outcome

HARMLESS, HARMFUL = 0, 1
"""Exit codes; 2 and above are errors."""


def rehearse(
    *,
    steps: Annotated[
        list[str],
        typer.Argument(
            metavar="STEP...",
            help="kill=BROKERS: they fail at once. stop=BROKERS: they shut down in order, one after"
            " the other. start=BROKERS: they come back and catch up. BROKERS are ids and rack:NAME,"
            " separated by commas.",
        ),
    ],
    what_if: WhatIf = None,
    from_checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--from-checkpoint",
            metavar="CHECKPOINT",
            help="The machines to begin with, instead of the data folder's: a checkpoint, a data"
            " folder (a shadow's too), or an exported file.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=0, help="As of this micro-batch; the last by default."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Most partitions to name of a list; 0 for all.")
    ] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each step as a JSON line instead.")
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Tell what would become of partitions if brokers failed, stopped and started now.

    Decides on a copy of the machines out of the checkpoint; nothing is written or sent. Exit code 0
    when every partition keeps a leader that was in sync and enough replicas in sync, 1 when one
    does not or a broker may not stop, 2 or more when it cannot be told.
    """
    from streaming.rehearsal.cluster_copy import ClusterCopy
    from streaming.rehearsal.rehearsal import rehearse as outcomes_of
    from streaming.rehearsal.steps import parsed_steps

    asked = parsed_steps(steps)
    console, found = table_console(), []
    snapshot = _machines(data_dir, from_checkpoint, batch, what_if or ())
    for outcome in outcomes_of(ClusterCopy(snapshot), asked):
        found.append(outcome)
        _show(console, outcome, limit, as_json=as_json)
    if not as_json:
        console.print(_leaders(found))
    raise typer.Exit(HARMFUL if any(one.does_harm for one in found) else HARMLESS)


def _machines(
    data_dir: Path | None, from_checkpoint: Path | None, batch: int | None, what_if: Sequence[str]
) -> Snapshot:
    from dataclasses import replace

    from checkpoints.what_if import under_settings
    from streaming.checkpoint_tools.snapshots import load_snapshot
    from streaming.replay.settings_in_log import what_if_from

    chosen = what_if_from(what_if)
    settings = settings_from(None, None, data_dir)
    with LazySpark(settings) as spark:
        snapshot = load_snapshot(from_checkpoint or settings.data_dir, spark, batch)
    return replace(snapshot, states=under_settings(snapshot.states, chosen))


def _show(console: Console, outcome: Outcome, limit: int, *, as_json: bool) -> None:
    if as_json:
        fields = asdict(outcome) | {"step": _name(outcome)}
        console.out(orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS).decode())
        return
    if outcome.step is None:
        console.print(f"now: {sum(outcome.leaders.values())} partitions have a leader")
    else:
        console.print(f"{outcome.step}: {outcome.moved} get another leader")
    for broker, at_risk in outcome.refused.items():
        _list(console, f"broker {broker} may not stop, for", at_risk, limit)
    _list(console, "led by a replica that was not in sync:", outcome.unclean, limit)
    _list(console, "without a leader:", outcome.leaderless, limit)
    _list(console, "below min.insync.replicas:", outcome.too_few, limit)


def _list(console: Console, title: str, places: Sequence[TopicPartition], limit: int) -> None:
    if not places:
        return
    named = [f"{topic}-{partition}" for topic, partition in places[: limit or None]]
    rest = len(places) - len(named)
    more = f", and {rest} more (--limit 0)" if rest else ""
    console.print(f"  {len(places)} {title} {', '.join(named)}{more}", markup=False, soft_wrap=True)


def _leaders(outcomes: Sequence[Outcome]) -> Table:
    """Return how many partitions each broker leads, at first and behind each step."""
    table = Table(title="\nleaders", title_justify="left", box=None, header_style="bold")
    for name in ("broker", *map(_name, outcomes)):
        table.add_column(name, justify="right")
    for broker in sorted({id_ for one in outcomes for id_ in one.leaders}):
        table.add_row(str(broker), *(str(one.leaders.get(broker, 0)) for one in outcomes))
    return table


def _name(outcome: Outcome) -> str:
    return "now" if outcome.step is None else str(outcome.step)
