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

if TYPE_CHECKING:
    from checkpoints.compare import Difference

SAME, DIFFERENT = 0, 1
"""Exit codes, as those of diff(1); 2 and above are errors."""


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

    Exit code 0 when nothing differs, 1 when something does.
    """
    from checkpoints.compare import compare
    from streaming.log.decision_reader import OpenDecisions
    from streaming.log.location import log_location

    console = Console(highlight=False)
    counts: Counter[str] = Counter()
    with (
        OpenDecisions(log_location(left)) as ours,
        OpenDecisions(log_location(right)) as theirs,
    ):
        found = compare(ours.decisions(), theirs.decisions())
        if as_json:
            for one in _counted(found, counts):
                console.out(orjson.dumps({**asdict(one), "fields": one.fields()}).decode())
        else:
            table = difference_table(_counted(found, counts), limit)
            if counts:
                console.print(table)
            console.print(summary(counts))
    raise typer.Exit(DIFFERENT if counts else SAME)


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
