"""`helmstream replay`: a recorded log folded again, and a digest over what is decided."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from streaming.commands.options import ConfigFiles, LogArgument
from streaming.commands.spark import LazySpark
from streaming.errors import ConfigurationError
from streaming.settings import Settings
from streaming.settings_loader import load_settings

if TYPE_CHECKING:
    from checkpoints.snapshot import Snapshot
    from streaming.log.recorded import RecordedLog
    from streaming.replay.plan import ReplayPlan

Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Where the decisions go, as a log; a replay that was interrupted goes on there.",
    ),
]
WhatIf = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="What if this setting had been so? Only settings that decisions depend on, such as"
        " unclean.leader.election.enable=true.",
    ),
]
FromCheckpoint = Annotated[
    Path | None,
    typer.Option(
        "--from-checkpoint",
        metavar="CHECKPOINT",
        help="Go on from these machines: a checkpoint, a data folder, or an exported file.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="OFFSET|TIME",
        help="Stop before this offset, or before the first record of this time (ISO 8601).",
    ),
]
Batch = Annotated[int | None, typer.Option("--batch", min=1, help="Most events folded at once.")]
Slots = Annotated[
    int | None, typer.Option("--slots", min=1, help="Slots that topics are spread over.")
]
Local = Annotated[bool, typer.Option("--local", help="Fold in this process, without Spark.")]


def replay(
    *,
    log: LogArgument,
    out: Out,
    config: ConfigFiles = None,
    what_if: WhatIf = None,
    from_checkpoint: FromCheckpoint = None,
    until: Until = None,
    batch: Batch = None,
    slots: Slots = None,
    local: Local = False,
) -> None:
    """Fold a recorded log again; the same log gives the same decisions and the same digest.

    The last line is the digest over the decisions. Compare two replays with helmstream diff.
    """
    from streaming.log.location import log_location
    from streaming.log.recorded import end_of, open_recorded
    from streaming.paths import DataDir
    from streaming.replay.decisions import check_is_of_events, check_same_log
    from streaming.replay.plan import ReplayPlan
    from streaming.replay.settings_in_log import what_if_from

    settings = replay_settings(config, slots, batch)
    chosen = what_if_from(what_if or ())
    where = log_location(log)
    reader = open_recorded(where)
    with LazySpark(settings) as spark, closing(reader):
        check_is_of_events(reader, where)
        engine = Engine(settings, local, spark)
        plan = ReplayPlan(
            log=where,
            end=end_of(reader, until),
            batch=settings.event_log_batch_max_events,
            layout=settings.layout,
            local=local,
            what_if=chosen,
            start=engine.snapshot(from_checkpoint) if from_checkpoint else None,
            out=DataDir(out),
        )
        plan.claim()
        check_same_log(plan.out.decisions, reader)
        run_plan(plan, reader, engine)


def replay_settings(config: list[Path] | None, slots: int | None, batch: int | None) -> Settings:
    """Settings of mode replay; raises ConfigurationError."""
    given = ["mode=replay"]
    given += [f"slots={slots}"] if slots is not None else []
    given += [f"event.log.batch.max.events={batch}"] if batch is not None else []
    return load_settings(config or (), given)


class Engine:
    """What folds: this process, or a query in a Spark session."""

    def __init__(self, settings: Settings, local: bool, spark: LazySpark) -> None:
        """Take settings of mode replay; start nothing."""
        self._settings = settings
        self._local = local
        self._spark = spark

    def snapshot(self, path: Path) -> Snapshot:
        """Return the machines at `path`, spread over as many slots as are wanted.

        A streaming checkpoint is read through Spark, also for a local replay.
        """
        from checkpoints.reslot import reslot
        from streaming.checkpoint_tools.snapshots import load_snapshot

        settings = self._settings
        return reslot(load_snapshot(path, self._spark), settings.layout)

    def warm(self) -> None:
        """Start what takes long, so that it does not count as folding."""
        if not self._local:
            self._spark()

    def fold(self, plan: ReplayPlan, reader: RecordedLog, progress: Callable[[int], None]) -> None:
        """Fold what the plan asks for."""
        if self._local:
            from streaming.replay.local import replay_locally

            replay_locally(plan, reader, progress)
        else:
            from streaming.replay.spark import replay_through_spark

            replay_through_spark(self._spark(), self._settings, plan, reader, progress)


def run_plan(plan: ReplayPlan, reader: RecordedLog, engine: Engine) -> None:
    """Fold with a progress bar; say how fast it was and the digest."""
    from streaming.replay.decisions import digest_of

    engine.warm()
    first = first_event(plan, reader)
    if first == plan.end:
        Console(stderr=True).print(f"there are no events to fold up to offset {first}")
    began = time.monotonic()
    folded: list[int] = []
    with _progress_bar() as bar:
        task = bar.add_task("folding", total=plan.end - first, rate="")

        def advance(offset: int) -> None:
            # The first call says where a replay that was interrupted goes on.
            folded.append(offset)
            rate = _rate(offset - folded[0], time.monotonic() - began)
            bar.update(task, completed=offset - first, rate=rate)

        engine.fold(plan, reader, advance)
    passed = time.monotonic() - began
    digest = digest_of(plan.out.decisions)
    console = Console(highlight=False, markup=False)
    console.print(
        f"folded {folded[-1] - folded[0]} events up to offset {plan.end} in {passed:.1f} s, "
        f"{_rate(folded[-1] - folded[0], passed)}"
    )
    console.print(f"{digest.decisions} decisions in {plan.out.decisions}", soft_wrap=True)
    console.print(f"digest {digest.hexdigest()}", soft_wrap=True)


def first_event(plan: ReplayPlan, reader: RecordedLog) -> int:
    """Return the offset where the plan starts; say so where a log has lost its beginning.

    Raises ConfigurationError when the log does not have what comes after the plan's machines.
    """
    start = reader.start_offset()
    if plan.start is None:
        if start:
            Console(stderr=True).print(
                f"the log starts at offset {start}: nothing is decided before the first "
                "controller_elected in it; --from-checkpoint goes on from machines"
            )
        return start
    if not start <= plan.start.offset <= plan.end:
        raise ConfigurationError(
            f"the machines have folded up to {plan.start.offset}, "
            f"the log is to be folded from {start} to {plan.end}"
        )
    return plan.start.offset


def _rate(events: int, seconds: float) -> str:
    return f"{events / seconds:,.0f} events/s" if seconds > 0 else ""


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
