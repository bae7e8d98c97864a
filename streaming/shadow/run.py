"""`helmstream shadow`: everything put together, from connecting to the summary."""

from __future__ import annotations

import logging
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live

from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.preflight import check_zookeeper
from streaming.settings import Settings
from streaming.shadow.comparison import Comparison
from streaming.shadow.engine import Engine, LocalEngine, SparkEngine
from streaming.shadow.reader import ClusterReader
from streaming.shadow.report import Report
from streaming.shadow.screen import panel, sentence
from streaming.shadow.shadow import Shadow, Watcher, follow
from streaming.zk.reader import ZkReader

DIVERGED = 5
"""Exit code when something differed that no meant difference explains."""

_GRACE_SHARE = 10
"""A contradiction may be a step on the way for this part of the window."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: without Spark, for how long (None: until a signal comes), and what to report."""

    local: bool
    duration_s: float | None
    report: Path | None
    all_of_them: bool


def run_shadow(settings: Settings, options: Options, console: Console) -> int:
    """Watch until the time is over or a signal comes; return the exit code.

    Raises NoZooKeeper, LogLocked, CheckpointMismatch.
    """
    folders = DataDir(settings.data_dir)
    log_to_file(folders.root / "log" / "shadow.log")
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    engine: Engine = (LocalEngine if options.local else SparkEngine)(settings, folders)
    try:
        return _watch(settings, options, console, engine, stopped)
    finally:
        engine.close()


def log_to_file(path: Path) -> None:
    """Send what is logged to a file: the terminal shows the comparison."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(filename=path, level=logging.INFO, format=form)
    for name in ("py4j", "kazoo"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _watch(
    settings: Settings,
    options: Options,
    console: Console,
    engine: Engine,
    stopped: threading.Event,
) -> int:
    folders = DataDir(settings.data_dir)
    window_ms = settings.shadow_window_ms
    with (
        EmbeddedLogReader(folders.events) as events,
        ZkReader(settings.zookeeper_connect, settings.zookeeper_session_timeout_ms) as session,
    ):
        path = options.report or folders.root / "shadow-report.jsonl"
        report = Report(path, events, all_of_them=options.all_of_them)
        shadow = Shadow(engine, Comparison(window_ms, window_ms // _GRACE_SHARE), report)
        watcher = Watcher(session, lambda wake: ClusterReader(session, settings, wake), stopped)
        watcher.start()
        try:
            _follow(shadow, report, watcher, options, console=console, stopped=stopped)
        finally:
            stopped.set()
            watcher.stop()
            compared = shadow.comparison
            summary = report.close(
                events=shadow.events,
                partitions=compared.partitions,
                unsettled=compared.unsettled,
            )
        if watcher.failure is not None:
            raise watcher.failure
    console.print_json(data=summary)
    console.print(f"report: {path}")
    return DIVERGED if report.tally.divergences else 0


def _follow(
    shadow: Shadow,
    report: Report,
    watcher: Watcher,
    options: Options,
    *,
    console: Console,
    stopped: threading.Event,
) -> None:
    end = None if options.duration_s is None else time.monotonic() + options.duration_s
    shown = 0

    def tick() -> None:
        nonlocal shown
        if end is not None and time.monotonic() >= end:
            stopped.set()
        if live is not None:
            live.update(panel(shadow, report))
            return
        for verdict in report.recent[len(report.recent) - (report.noted - shown) :]:
            console.print(sentence(verdict), soft_wrap=True)
        shown = report.noted

    live = Live(panel(shadow, report), console=console) if console.is_terminal else None
    if live is None:
        follow(shadow, watcher.looks, stopped, tick)
    else:
        with live:
            follow(shadow, watcher.looks, stopped, tick)
