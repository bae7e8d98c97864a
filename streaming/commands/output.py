"""Where commands print tables: on a terminal in its width, into a pipe or a file whole."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

_WHOLE_COLUMNS = 1000000


def table_console() -> Console:
    """Return a console of stdout; what no terminal shows is cut at no width, for grep and awk."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WHOLE_COLUMNS)


def fits(console: Console, table: Table) -> bool:
    """Return whether a console has room for the whole of a table."""
    unbounded = console.options.update(max_width=_WHOLE_COLUMNS)
    return console.measure(table, options=unbounded).maximum <= console.width
