"""Where commands print tables: on a terminal in its width, into a pipe or a file whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WHOLE_COLUMNS = 1000000


def table_console() -> Console:
    """Return a console of stdout; what no terminal shows is cut at no width, for grep and awk."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WHOLE_COLUMNS)


def table_of(rows: Sequence[Mapping[str, object]], *, whole: bool = False) -> Table:
    """Return rows with the same names as a table; None is a dash. whole: long words go on in the
    next line, and are not cut.
    """
    table = Table(box=None, header_style="bold")
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold" if whole else "ellipsis")
    for row in rows:
        table.add_row(*("-" if one is None else Text(str(one)) for one in row.values()))
    return table


def fits(console: Console, table: Table) -> bool:
    """Return whether a console has room for the whole of a table."""
    unbounded = console.options.update(max_width=_WHOLE_COLUMNS)
    return console.measure(table, options=unbounded).maximum <= console.width
