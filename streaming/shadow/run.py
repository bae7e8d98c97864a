"""`helmstream shadow`: everything put together, from connecting to the summary."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.preflight import check_zookeeper, claim_for_shadow
from streaming.process.stop_signals import on_stop_signal
from streaming.process.wall_clock import steady_clock_ms
from streaming.settings import Settings
from streaming.shadow.comparison import Comparison
from streaming.shadow.engine import Engine, LocalEngine, SparkEngine
from streaming.shadow.exit_codes import exit_code
from streaming.shadow.reader import ClusterReader
from streaming.shadow.report import Report
from streaming.shadow.screen import panel, sentence, watching
from streaming.shadow.shadow import Shadow, Watcher, awaited, follow, gaps
from streaming.supervisor.processes import LOG_BYTES_MAX
from streaming.zk.opening import reader_of

logger = logging.getLogger(__name__)

_GRACE_SHARE = 10
"""A contradiction may be a step on the way for this part of the window."""
_LEADERS_ASK_SINCE = (2, 7)
"""KIP-497."""
_LAST_LOOK_S = 1.0
"""How much longer than a window the end may take, for the looks and ticks within it."""


class Stop:
    """The first wish to stop ends the watching, the second one also the wait for open matches."""

    def __init__(self) -> None:
        """Nobody wishes it yet."""
        self.wished = threading.Event()
        self.at_once = threading.Event()

    def on_signal(self, *_: object) -> None:
        """Note a signal."""
        (self.at_once if self.wished.is_set() else self.wished).set()


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: without Spark, for how long (None: until a signal comes), and what to report."""

    local: bool
    duration_s: float | None
    report: Path | None
    all_of_them: bool


def run_shadow(settings: Settings, options: Options, console: Console) -> int:
    """Watch until the time is over or a signal comes, and then for up to a window more what waits
    for a match; return the exit code.

    Raises NoZooKeeper, ConfigurationError for a controller's data folder, LogLocked,
    CheckpointMismatch.
    """
    folders = DataDir(settings.data_dir)
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    claim_for_shadow(folders.root)
    log_to_file(folders.printed / "shadow.log")
    stop = Stop()
    on_stop_signal(stop.on_signal)
    with console.status("starting"):
        engine: Engine = (LocalEngine if options.local else SparkEngine)(settings, folders)
    try:
        return _watch(settings, options, console, engine, stop)
    finally:
        engine.close()


def log_to_file(path: Path) -> None:
    """Send what is logged to a file: the terminal shows the comparison. At 64 MiB it moves to
    `<name>.1`, as the logs of front and job do.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    file = RotatingFileHandler(path, maxBytes=LOG_BYTES_MAX, backupCount=1)
    logging.basicConfig(handlers=[file], level=logging.INFO, format=form)
    for name in ("py4j", "kazoo"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _watch(
    settings: Settings,
    options: Options,
    console: Console,
    engine: Engine,
    stop: Stop,
) -> int:
    folders = DataDir(settings.data_dir)
    window_ms = settings.shadow_window_ms
    with (
        EmbeddedLogReader(folders.events) as events,
        reader_of(settings) as session,
    ):
        path = options.report or folders.shadow_report
        report = Report(path, events, all_of_them=options.all_of_them)
        comparison = Comparison(
            window_ms,
            window_ms // _GRACE_SHARE,
            leaders_ask=settings.inter_broker_protocol >= _LEADERS_ASK_SINCE,
        )
        shadow = Shadow(engine, comparison, report)
        ended = threading.Event()
        watcher = Watcher(session, lambda wake: ClusterReader(session, settings, wake), ended)
        watcher.start()
        left: Sequence[str] | None = None
        try:
            with shown(shadow, report, console) as show:
                left = follow_to_the_end(shadow, watcher, stop, options.duration_s, show)
        finally:
            missing = gaps(shadow, watcher, left)
            ended.set()
            watcher.stop()
            compared = shadow.comparison
            summary = report.close(
                watching_since_ms=shadow.watching_since_ms,
                events=shadow.events,
                partitions=compared.partitions,
                unsettled=compared.unsettled,
                gaps=missing,
            )
        if watcher.failure is not None:
            raise watcher.failure
    console.print_json(data=summary)
    console.print(f"report: {path}", markup=False)
    for one in missing:
        console.print(Text.assemble(("not everything was compared: ", "bold red"), one))
    return exit_code(report.tally.divergences, missing)


def follow_to_the_end(
    shadow: Shadow,
    watcher: Watcher,
    stop: Stop,
    duration_s: float | None,
    show: Callable[[], None],
) -> list[str]:
    """Follow until the time is over or a stop is wished, and then until nothing is awaited, for up
    to a window: what our machine decided last is not compared before. Return what still is.
    """
    end = math.inf if duration_s is None else time.monotonic() + duration_s

    def over() -> bool:
        if time.monotonic() >= end:
            stop.wished.set()
        return stop.wished.is_set() or watcher.failure is not None

    follow(shadow, watcher, over, show)
    until_ms = steady_clock_ms()
    last = time.monotonic() + shadow.comparison.window_ms / 1000 + _LAST_LOOK_S

    left: list[str] = []

    def done() -> bool:
        nonlocal left
        left = awaited(shadow, watcher, until_ms)  # asked once: later looks are not of it
        given_up = stop.at_once.is_set() or time.monotonic() >= last
        return not left or given_up or watcher.failure is not None

    follow(shadow, watcher, done, show)
    return left


@contextmanager
def shown(shadow: Shadow, report: Report, console: Console) -> Iterator[Callable[[], None]]:
    """Give what shows the present state: a line once the first read is over, and counts that move,
    or without a terminal a line for each verdict.
    """
    said = ""
    with _counts(shadow, report, console) as show_counts:

        def show() -> None:
            nonlocal said
            if not said and shadow.watching_since_ms is not None:
                said = watching(shadow, shadow.watching_since_ms)
                logger.info("%s", said)
                console.print(said, soft_wrap=True, highlight=False)
            show_counts()

        yield show


@contextmanager
def _counts(shadow: Shadow, report: Report, console: Console) -> Iterator[Callable[[], None]]:
    if console.is_terminal:
        with Live(panel(shadow, report), console=console) as live:
            yield lambda: live.update(panel(shadow, report))
        return
    shown = 0

    def show() -> None:
        nonlocal shown
        for verdict in report.recent[len(report.recent) - (report.noted - shown) :]:
            console.print(sentence(verdict), soft_wrap=True)
        shown = report.noted

    yield show
