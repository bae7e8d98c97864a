"""The demo from the first jar to the exit code."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka.errors import KafkaError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from streaming.demo.cluster import DemoCluster
from streaming.demo.screen import Lines, LivePanel
from streaming.demo.steps import STORY
from streaming.demo.story import Audience, Told, tell
from streaming.demo.summary import table_of
from streaming.demo.verdict import NotReadable, Verdict
from streaming.embedded.java import find_java
from streaming.embedded.kafka_jars import DEFAULT_VERSION, kafka_jars
from streaming.process.stop_signals import on_stop_signal
from streaming.spark.local_fs import fetch_local_fs_jar

_TABLE_WIDTH = 132
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def run_demo(options: Sequence[str], console: Console, *, keep: bool = False) -> int:
    """Tell the story and return the exit code: 0 only if every step was seen and nothing was lost.

    options: --config and --set options for front and job. The folder with all logs is removed at
    the end unless keep is set or something was not as it should be. Raises JavaMissing, JavaTooOld,
    ArtifactsUnavailable, and ChildDied, NotReady when ZooKeeper does not start.
    """
    find_java()
    on_stop_signal(lambda number: sys.exit(128 + number))
    fetch_jars(console)
    folder = Path(tempfile.mkdtemp(prefix="helmstream-demo-"))
    logging.basicConfig(filename=folder / "demo.log", level=logging.WARNING, format=_LOG_FORMAT)
    good = False
    try:
        story, verdict = _tell(folder, options, console)
        good = show_end(story, verdict, console)
    except (KeyboardInterrupt, SystemExit):
        good = not keep  # asked to leave: nothing to look into
        raise
    finally:
        if good and not keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"logs and data are in {folder}", markup=False, highlight=False)
    return 0 if good else 1


def fetch_jars(console: Console) -> None:
    """Fill the cache with Kafka's jars, showing how far it is, and with the job's; nothing is shown
    when they are there.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"Kafka {DEFAULT_VERSION}'s jars, once", total=None, visible=False)

        def fetched(module: str, done: int, found: int) -> None:
            progress.update(task, completed=done, total=found, visible=True)
            if not console.is_terminal:
                progress.console.print(f"{done}/{found} {module}", markup=False, highlight=False)

        kafka_jars(DEFAULT_VERSION, progress=fetched)
    fetch_local_fs_jar()


def show_end(story: Sequence[Told], verdict: Verdict | None, console: Console) -> bool:
    """Print the table and the verdict; return whether all is as it should be."""
    wide = console if console.is_terminal else Console(file=console.file, width=_TABLE_WIDTH)
    wide.print(table_of(story))
    if verdict is None:
        console.print("the topic could not be read back")
        return False
    for one in verdict.lost:
        console.print(f"lost: partition {one.partition}, offset {one.offset}", highlight=False)
    console.print(str(verdict), highlight=False)
    every_step = len(story) == len(STORY) and all(told.missing is None for told in story)
    return every_step and verdict.acked > 0 and not verdict.lost


def _tell(
    folder: Path, options: Sequence[str], console: Console
) -> tuple[list[Told], Verdict | None]:
    with ExitStack() as stack:
        stack.callback(console.print, "everything is stopped", highlight=False)
        demo = DemoCluster(folder, options)
        stack.callback(demo.stop)
        with _audience(console, demo) as audience:
            story = tell(STORY, demo, audience)
        console.print("reading everything back", highlight=False)
        demo.stop_traffic()
        try:
            return story, demo.verdict()
        except (NotReadable, KafkaError) as error:
            console.print(f"{error!r}", markup=False, highlight=False)
            return story, None


@contextmanager
def _audience(console: Console, demo: DemoCluster) -> Iterator[Audience]:
    if not console.is_terminal:
        yield Lines(console)
        return
    with LivePanel(console, STORY, demo) as panel:
        yield panel
