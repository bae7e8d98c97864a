"""`helmstream explain`: why a partition is as it is, from the logs of a data folder."""

from __future__ import annotations

import re
from typing import Annotated

import orjson
import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, DataDir, Overrides, settings_from
from streaming.errors import ConfigurationError


def explain(
    *,
    subject: Annotated[
        str, typer.Argument(metavar="TOPIC-PARTITION", help="A partition, such as orders-7.")
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME|OFFSET",
            help="The last change up to then: an event's offset, or a time in ISO 8601 (UTC).",
        ),
    ] = None,
    story: Annotated[
        int | None, typer.Option("--story", metavar="N", min=1, help="The last N changes.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON objects, one a line.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDir = None,
) -> None:
    """Explain a partition's last change: event, rule, candidates, znode version, brokers.

    Reads the logs of a data folder; a controller that is running does not notice.
    """
    from streaming.explain import render
    from streaming.explain.story import Explainer
    from streaming.explain.story import as_json as as_object
    from streaming.paths import DataDir as Folders

    topic, partition = parsed_subject(subject)
    moment = parsed_moment(at)
    with Explainer(Folders(settings_from(config, overrides, data_dir).data_dir)) as explainer:
        if story is None:
            found = [explainer.explain(topic, partition, **moment)]
        else:
            found = explainer.story(topic, partition, story, **moment)
    console = Console()
    if as_json:
        for one in found:
            console.out(orjson.dumps(as_object(one)).decode(), highlight=False)
    else:
        console.print(render.explanation(found[0]) if story is None else render.story(found))


def parsed_subject(subject: str) -> tuple[str, int]:
    """The topic and the partition's number; raises ConfigurationError."""
    match = re.fullmatch(r"(.+)-(\d+)", subject)
    if match is None:
        raise ConfigurationError(f"{subject!r} is not a partition such as orders-7")
    return match[1], int(match[2])


def parsed_moment(at: str | None) -> dict[str, int]:
    """What --at means, as arguments of an Explainer; raises ConfigurationError."""
    from streaming.log.recorded import time_ms_of

    if at is None:
        return {}
    return {"at": int(at)} if at.isdecimal() else {"time_ms": time_ms_of("--at", at)}
