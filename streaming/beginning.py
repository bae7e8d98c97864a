"""Where a job begins, and with which machines: behind what its checkpoint has folded, or at the
log's end where it has none.

What happened before is in ZooKeeper and in __consumer_offsets, and comes from there by a load. To
fold the log's beginning instead would carry out again what was decided long ago, or, where
retention has taken the last election, decide nothing for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkpoints.damage import damage, lost_states
from checkpoints.layout import CheckpointMismatch, check_layout, set_aside
from checkpoints.read import folded_until, has_state, planned_batches, read_machines
from state.cluster.cluster import Cluster
from state.events import EventKind
from state.step import Machine
from streaming.log.api import LogError, LogReader, LogRecord
from streaming.log.location import KafkaTopic, LogLocation
from streaming.log.recorded import open_log
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.sinks.outcomes import OUTCOME_KINDS
from streaming.standby import Follower

logger = logging.getLogger(__name__)


def begin(settings: Settings, folders: DataDir) -> int:
    """Return the offset of the first event to fold; a checkpoint that Spark cannot read is set
    aside.

    Raises CheckpointMismatch when the checkpoint was made with other settings, or for another log.
    """
    if wrong := damage(folders.checkpoint):
        _give_up_checkpoint(folders, wrong)
    try:
        with closing(open_log(folders.event_log)) as log:
            first = _first_offset(folders, log)
    except LogError:
        if isinstance(folders.event_log, KafkaTopic):
            raise
        first = folded_until(folders.checkpoint)  # the front has not made it yet
    check_layout(
        folders.checkpoint,
        slots=settings.slots,
        partitions=settings.shuffle_partitions,
        group_slots=settings.group_slots,
    )
    return first


def restored(
    spark: SparkSession, folders: DataDir, waited: Follower | None = None
) -> dict[int, Machine] | None:
    """Return the machines of the checkpoint, which waited may know; none without one. When Spark
    cannot read them the checkpoint is set aside, and None returned.
    """
    try:
        if waited is not None:
            return waited.machines()
        return read_machines(spark, folders.checkpoint) if has_state(folders.checkpoint) else {}
    except (Py4JJavaError, PySparkException) as error:
        if (lost := lost_states(error)) is None:
            raise
        _give_up_checkpoint(folders, lost)
        return None


def waiting_events(log: LogLocation, folded: int) -> int:
    """Return how many events no committed batch has folded; none while there is no log."""
    try:
        with closing(open_log(log)) as reader:
            return reader.end_offset() - folded
    except LogError:
        if isinstance(log, KafkaTopic):
            raise
        return 0


def unfolded_events(log: LogLocation, folded: int) -> list[LogRecord]:
    """Return the outcomes among the events that no committed batch has folded."""
    waiting = waiting_events(log, folded)
    if not waiting:
        return []
    with closing(open_log(log)) as reader:
        records = reader.read(folded, folded + waiting)
        return [record for record in records if record.kind in OUTCOME_KINDS]


def _give_up_checkpoint(folders: DataDir, wrong: str) -> None:
    """Set the checkpoint aside, saying why."""
    logger.error(
        "the checkpoint %s cannot be gone on from: %s; it is kept as %s, and everything is loaded"
        " again",
        folders.checkpoint,
        wrong,
        set_aside(folders.checkpoint),
    )


def knows_no_term(machines: Iterable[Machine]) -> bool:
    """Return whether no election is known: who controls must load everything again."""
    return all(one.authority.epoch < 0 for one in machines if isinstance(one, Cluster))


def _first_offset(folders: DataDir, log: LogReader) -> int:
    start, end = log.start_offset(), log.end_offset()
    if has_state(folders.checkpoint):
        return _goes_on(folders, start, end)
    if not start and not _has_election(log, end):
        return 0
    if planned_batches(folders.checkpoint):
        _give_up_checkpoint(folders, "no batch of it was committed")
    return end


def _goes_on(folders: DataDir, start: int, end: int) -> int:
    folded = folded_until(folders.checkpoint)
    if not start <= folded <= end:
        raise CheckpointMismatch(
            f"the checkpoint {folders.checkpoint} has folded up to offset {folded}, the log"
            f" {folders.event_log} has {start} to {end}: it is another one, or has lost a part;"
            " start with an empty data.dir instead: the cluster is then loaded again"
        )
    return folded


def _has_election(log: LogReader, end: int) -> bool:
    """Return whether anything was ever decided; in a whole log an election comes first."""
    return any(one.kind == EventKind.CONTROLLER_ELECTED for one in log.read(0, end))
