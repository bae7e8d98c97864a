"""`helmstream status`: what a running helmstream holds and does, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming.commands.options import ConfigFiles, DataDir, Overrides, settings_from
from streaming.status_socket import fetch_status


def status(
    *,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON object itself.")] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Wait for the answer.")
    ] = 5.0,
) -> None:
    """Show the status of the helmstream that runs on a data folder.

    Exit code 0 when it answers, so that this is also the health check of the container.
    """
    answer = fetch_status(settings_from(config, overrides, data_dir).data_dir, timeout_s)
    console = Console()
    if as_json:
        console.out(orjson.dumps(answer).decode(), highlight=False)
    else:
        console.print(render_status(answer))


def render_status(answer: Mapping[str, Any]) -> Table:
    """The status as a table of two columns; what is nested in it is shown with dotted names."""
    table = Table("what", "value", box=None, header_style="bold", pad_edge=False)
    for name, value in _rows(answer):
        table.add_row(Text(name), Text(value))
    return table


def _rows(answer: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in answer.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value if isinstance(value, str) else orjson.dumps(value).decode()
