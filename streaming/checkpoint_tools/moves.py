"""Checkpoints made anew: with other slots or shuffle partitions, from a file, from the log.

The event log's offset goes with the machines, so the job goes on where the old checkpoint ended.
The one that is replaced is kept beside it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from checkpoints.ahead import Ahead, note_ahead, read_ahead
from checkpoints.durable import fsync_folder
from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import decode_machine
from checkpoints.read import carried_out, has_state
from checkpoints.replay import States
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot, write_snapshot
from checkpoints.tables import partition_table
from streaming.checkpoint_tools.seed import seed_checkpoint
from streaming.checkpoint_tools.snapshots import MACHINES_FILE
from streaming.errors import HelmstreamError
from streaming.folding import fold_range
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.recorded import open_log
from streaming.log.writer_lock import LogLocked, WriterLock
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.starting.job_lock import JobLock


class FrontRuns(HelmstreamError):
    """What is asked for cannot be done beside a front."""


def check_log_made(folders: DataDir) -> None:
    """Raise LogError when there is no event log; before a lock is taken, which would make its
    folder.
    """
    open_log(folders.event_log).close()


@contextmanager
def job_stopped(folders: DataDir) -> Iterator[None]:
    """Hold the job's locks; raises JobLocked or LogLocked, naming the process, when a job runs."""
    with JobLock(folders.job_lock) as lock:
        lock.acquire("stop helmstream first")
        with EmbeddedLogWriter(folders.decisions):
            yield


@contextmanager
def front_stopped_unless_known(folders: DataDir) -> Iterator[None]:
    """As `front_stopped`, where no checkpoint says how far decisions were carried out: the job
    would carry them out again, under the term that a front keeps.

    Raises FrontRuns.
    """
    known = has_state(folders.checkpoint) or read_ahead(folders.checkpoint) is not None
    with nullcontext() if known else front_stopped(folders):
        yield


@contextmanager
def front_stopped(folders: DataDir) -> Iterator[None]:
    """Hold the front's lock: a front that keeps its term loads nothing anew, and nobody would carry
    out what is decided about events that count as folded.

    Raises FrontRuns.
    """
    try:
        lock = WriterLock(folders.events)
    except LogLocked as error:
        raise FrontRuns(f"the front has to be stopped too, not the job alone: {error}") from error
    with lock:
        yield


def export_checkpoint(snapshot: Snapshot, folder: Path) -> None:
    """Write the machines (to go on from) and the partitions (to look at) as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    write_snapshot(folder / MACHINES_FILE, snapshot)
    machines = {key: decode_machine(data) for key, data in snapshot.states.items()}
    pq.write_table(partition_table(machines), folder / "partitions.parquet")


def replace_checkpoint(
    spark: SparkSession, settings: Settings, folders: DataDir, snapshot: Snapshot
) -> Path | None:
    """Make the data folder's checkpoint one of these machines, in the slots and shuffle partitions
    of the settings; return where the one before is kept, None when there was none.

    How far decisions were carried out goes with the event log, and so into the new one too.
    Raises CheckpointMismatch when one from an earlier replacement is still there, or when the log
    does not have what comes next.
    """
    kept = folders.replaced_checkpoint
    replaced = folders.checkpoint.exists()
    if kept.exists():
        again = "" if replaced else f" or, if that was cut off, rename it to {folders.checkpoint}"
        raise CheckpointMismatch(
            f"{kept} is left from the last replacement: remove it first{again}"
        )
    _check_log(folders, snapshot.offset)
    ahead = carried_out(folders.checkpoint)
    fresh = _seeded(spark, settings, folders.unfinished_checkpoint, snapshot)
    if ahead.planned > snapshot.offset:
        note_ahead(fresh, Ahead(None, ahead.done, ahead.planned))
    if replaced:
        folders.checkpoint.rename(kept)
    fresh.rename(folders.checkpoint)
    fsync_folder(folders.root)
    return kept if replaced else None


def _seeded(spark: SparkSession, settings: Settings, fresh: Path, snapshot: Snapshot) -> Path:
    """Return the folder of a new checkpoint; what one that was cut off left there is deleted."""
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / MACHINES_FILE
        write_snapshot(file, reslot(snapshot, settings.layout))
        seed_checkpoint(spark, settings, file, fresh)
    return fresh


def _check_log(folders: DataDir, offset: int) -> None:
    with closing(open_log(folders.event_log)) as reader:
        start, end = reader.start_offset(), reader.end_offset()
    if not start <= offset <= end:
        raise CheckpointMismatch(
            f"the machines have folded up to {offset}, "
            f"the log {folders.event_log} has {start} to {end}"
        )


def fold_whole_log(
    folders: DataDir, settings: Settings, progress: Callable[[int, int], None]
) -> Snapshot:
    """Return the machines that the whole event log leads to.

    progress: called with (folded, end). Raises CheckpointMismatch when retention has taken the
    log's beginning: what it leads to is then unknown.
    """
    states: States = {}
    with closing(open_log(folders.event_log)) as reader:
        start, end = reader.start_offset(), reader.end_offset()
        if start:
            raise CheckpointMismatch(
                f"the log {folders.event_log} starts at {start}, its beginning is gone; start with "
                "an empty data.dir instead: the cluster is then loaded again"
            )
        events = range(start, end)
        for batch in fold_range(states, reader, events, settings.layout):
            progress(batch.end_offset, end)
    return Snapshot(end, settings.layout, states)
