"""`helmstream diff`: what differs between two decision logs about the same events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming.commands.output import table_console
from streaming.errors import HelmstreamError

if TYPE_CHECKING:
    from checkpoints.compare import Difference

SAME, DIFFERENT = 0, 1
"""Exit codes, as those of diff(1); 2 and above are errors."""


class NotComparable(HelmstreamError):
    """What was given is no decision log, or cannot be read."""

    exit_code = 2


def diff(
    *,
    left: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A replay's folder, a data folder, a decision log, or the URL of its topic.",
        ),
    ],
    right: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Most rows to show; 0 for all.")
    ] = 50,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each difference as a JSON line instead.")
    ] = False,
) -> None:
    """Show what differs between two decision logs: event, kind, subject, and both values.

    Compared is what was decided about the events that both cover. Exit code 0 when nothing differs,
    1 when something does, 2 or more when they cannot be compared.
    """
    from streaming.log.api import LogError, LogUnavailable
    from streaming.log.recorded import NoRecordedLog

    try:
        differs = _diff(left, right, limit, as_json=as_json)
    except LogUnavailable:
        raise
    except (LogError, NoRecordedLog, OSError) as error:
        raise NotComparable(str(error)) from error
    raise typer.Exit(DIFFERENT if differs else SAME)


def _diff(left: str, right: str, limit: int, *, as_json: bool) -> bool:
    from checkpoints.compare import compare
    from streaming.log.decision_reader import OpenDecisions
    from streaming.log.location import log_location
    from streaming.replay.covered import CommonEvents, covered_events

    console = table_console()
    counts: Counter[str] = Counter()
    sides = log_location(left), log_location(right)
    with OpenDecisions(sides[0]) as ours, OpenDecisions(sides[1]) as theirs:
        both = CommonEvents(covered_events(sides[0], ours), covered_events(sides[1], theirs))
        found = compare(both.of("A", ours.decisions()), both.of("B", theirs.decisions()))
        if as_json:
            for one in _counted(found, counts):
                console.out(orjson.dumps({**asdict(one), "fields": one.fields()}).decode())
        else:
            table = difference_table(_counted(found, counts), limit)
            if counts:
                console.print(table)
            console.print(summary(counts))
    if remark := both.remark():
        Console(stderr=True, highlight=False).print(remark, soft_wrap=True)
    return bool(counts)


def _counted(found: Iterable[Difference], counts: Counter[str]) -> Iterator[Difference]:
    for one in found:
        counts[str(one.kind)] += 1
        yield one


def difference_table(found: Iterable[Difference], limit: int) -> Table:
    """Return one row for each field that differs, at most `limit` of them (0: all)."""
    table = Table("event", "kind", "subject", "field", "A", "B", box=None, header_style="bold")
    for one in found:
        for field, before, after in _values(one):
            if not limit or table.row_count < limit:
                row = (str(one.offset), str(one.kind), one.subject, field, before, after)
                table.add_row(*map(Text, row))
    return table


def _values(one: Difference) -> Iterator[tuple[str, str, str]]:
    if one.left is None or one.right is None:
        yield "all", _json(one.left), _json(one.right)
    else:
        for name in one.fields():
            yield name, _json(one.left.get(name)), _json(one.right.get(name))


def summary(counts: Counter[str]) -> str:
    """Return how much differs, by kind."""
    if not counts:
        return "no difference"
    kinds = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    return f"{counts.total()} differences: {kinds}"


def _json(value: object) -> str:
    return "-" if value is None else orjson.dumps(value).decode()
