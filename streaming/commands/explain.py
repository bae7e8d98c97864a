"""`helmstream explain`: why a partition is as it is, from the logs of a data folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.commands.output import table_console
from streaming.commands.spark import LazySpark

if TYPE_CHECKING:
    from checkpoints.snapshot import Snapshot
    from streaming.explain.story import Explanation, GroupExplanation
    from streaming.settings import Settings

_GROUP_STORY = 10


def explain(
    *,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC-PARTITION|GROUP",
            help="A partition, such as orders-7, or a consumer group.",
        ),
    ],
    group: Annotated[
        bool,
        typer.Option("--group", help="It is a group, although its name looks like a partition's."),
    ] = False,
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
    from_checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--from-checkpoint",
            metavar="CHECKPOINT",
            help="Machines of before the event, for when the event log does not reach back to an "
            "election: a checkpoint, a data folder, or an exported file.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON objects, one a line.")
    ] = False,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
) -> None:
    """Explain a partition's last change: event, rule, candidates, znode version, brokers; or what
    happened to a group: who came and went and why, which generations began, what was refused.

    Reads the logs of a data folder; a controller that is running does not notice.
    """
    from streaming.explain.story import Explainer
    from streaming.paths import DataDir

    partition = None if group else parsed_partition(subject)
    moment = parsed_moment(at)
    settings = settings_from(config, overrides, data_dir)
    retained = None if from_checkpoint is None else _retained(from_checkpoint, settings)
    with Explainer(DataDir(settings.data_dir, settings.event_log_url), retained) as explainer:
        if partition is None:
            _show_group(explainer.group_story(subject, story or _GROUP_STORY, **moment), as_json)
        elif story is None:
            topic, number = partition
            _show([explainer.explain(topic, number, **moment)], as_json)
        else:
            topic, number = partition
            _show(explainer.story(topic, number, story, **moment), as_json)


def _retained(path: Path, settings: Settings) -> Callable[[int], Snapshot]:
    from streaming.explain.retained import retained_before

    spark = LazySpark(settings)
    return lambda offset: retained_before(path, offset, spark)


def _show(found: list[Explanation], as_json: bool) -> None:
    from streaming.explain import render
    from streaming.explain.as_json import explanation

    if as_json:
        _print_lines(explanation(one) for one in found)
    else:
        table_console().print(
            render.story(found) if len(found) > 1 else render.explanation(found[0])
        )


def _show_group(found: list[GroupExplanation], as_json: bool) -> None:
    from streaming.explain import render
    from streaming.explain.as_json import group_change

    if as_json:
        _print_lines(group_change(one) for one in found)
    else:
        table_console().print(render.group_story(found))


def _print_lines(objects: Iterable[dict[str, Any]]) -> None:
    for one in objects:
        Console().out(orjson.dumps(one).decode(), highlight=False)


def parsed_partition(subject: str) -> tuple[str, int] | None:
    """The topic and the partition's number; None when it is no partition's name."""
    match = re.fullmatch(r"(.+)-(\d+)", subject)
    return None if match is None else (match[1], int(match[2]))


def parsed_moment(at: str | None) -> dict[str, int]:
    """What --at means, as arguments of an Explainer; raises ConfigurationError."""
    from streaming.log.recorded import time_ms_of

    if at is None:
        return {}
    return {"at": int(at)} if at.isdecimal() else {"time_ms": time_ms_of("--at", at)}
