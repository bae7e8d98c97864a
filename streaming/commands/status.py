"""`helmstream status`: what a running helmstream holds and does, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.commands.output import table_console
from streaming.errors import HelmstreamError
from streaming.sockets.status_socket import fetch_status


class NotInRole(HelmstreamError):
    """A helmstream runs, but not in the role that was asked for."""

    def __init__(self, role: str, required: str) -> None:
        from streaming.front.controller_role import RolePhase

        known = "" if required in list(RolePhase) else f"; the roles are {', '.join(RolePhase)}"
        super().__init__(f"the role is {role}, not {required}{known}")


class RoleInDoubt(HelmstreamError):
    """A helmstream runs in the role that was asked for, as far as it knows."""

    def __init__(self, role: str) -> None:
        super().__init__(
            f"the role is {role} as far as is known here, but ZooKeeper is out of reach: another"
            " controller may have been elected"
        )


def status(
    *,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON object itself.")] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Wait for the answer.")
    ] = 5.0,
    require: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Exit with 1 unless this is its role, as active, and ZooKeeper within reach.",
        ),
    ] = "",
) -> None:
    """Show the status of the helmstream that runs on a data folder.

    Exit code 0 when it answers; docs/status.md says what each line means.
    """
    answer = fetch_status(settings_from(config, overrides, data_dir).data_dir, timeout_s)
    console = table_console()
    if as_json:
        console.out(orjson.dumps(answer).decode(), highlight=False)
    else:
        console.print(render_status(answer))
    if require not in {"", answer["role"]}:
        raise NotInRole(answer["role"], require)
    if require and answer["in_doubt"]:
        raise RoleInDoubt(answer["role"])


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
