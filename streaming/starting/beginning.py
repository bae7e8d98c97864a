"""Where a job begins, and with which machines: behind what its checkpoint has folded, or at the
log's end where it has none; and behind what the last job carried out ahead of its query.

What happened before is in ZooKeeper and in __consumer_offsets, and comes from there by a load. To
fold the log's beginning instead would carry out again what was decided long ago, or, where
retention has taken the last election, decide nothing for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkpoints.ahead import read_ahead
from checkpoints.damage import damage, lost_states, move_aside
from checkpoints.layout import CheckpointMismatch, check_layout, layout_of
from checkpoints.machine_format import decode_machine
from checkpoints.read import carried_out, folded_until, has_state, planned_batches
from checkpoints.replay import States
from checkpoints.state_files import stored_states
from state.cluster.authority import Phase
from state.cluster.cluster import Cluster
from state.event_kinds import EventKind
from state.routing import CLUSTER_KEY
from state.step import Machine
from streaming.folding import fold_range
from streaming.log.api import LogError, LogReader, LogRecord
from streaming.log.location import KafkaTopic, LogLocation
from streaming.log.recorded import awaited_end, open_if_made, open_log
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.sinks.batch_events import FOLLOWING_KINDS
from streaming.starting.standby import CheckpointFollower

logger = logging.getLogger(__name__)

_UNOPENED = " (after a loss of power let the front open the log first: it finds its end)"


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a job begins.

    committed: the first event that the query folds; fresh: it has no checkpoint. offset: the first
    event that is not carried out, perhaps; states: the machines as of it. first_end: where the
    first batch ends, since it may have been begun before; None: anywhere.
    """

    committed: int
    fresh: bool
    offset: int
    states: States
    first_end: int | None = None

    @property
    def loading(self) -> bool:
        """Whether that is within a load of the cluster."""
        data = self.states.get(CLUSTER_KEY)
        machine = None if data is None else decode_machine(data)
        return isinstance(machine, Cluster) and machine.authority.phase is Phase.LOADING


def begin(
    settings: Settings,
    folders: DataDir,
    spark: Callable[[], SparkSession],
    waited: CheckpointFollower | None = None,
) -> Beginning:
    """Return where the job begins; a checkpoint that Spark cannot read is moved aside.

    spark: opens it; called only where Spark alone can tell the states. waited: who may know them.
    Raises CheckpointMismatch as `first_event` does.
    """
    committed = first_event(settings, folders)
    if (states := restored(spark, folders, waited)) is None:
        committed, states = first_event(settings, folders), {}
    ahead = carried_out(folders.checkpoint)
    done = max(committed, ahead.done)
    if done > committed:
        _catch_up(states, settings, folders, range(committed, done))
    first_end = ahead.planned if ahead.planned > done else None
    if first_end is not None:
        with closing(open_log(folders.event_log)) as log:
            awaited_end(log, first_end)
    fresh = not has_state(folders.checkpoint)
    return Beginning(committed, fresh, done, states, first_end)


def first_event(settings: Settings, folders: DataDir) -> int:
    """Return the offset of the first event to fold; a checkpoint that Spark cannot read is set
    aside.

    Raises CheckpointMismatch when the checkpoint was made with other settings, or for another log.
    """
    if wrong := damage(folders.checkpoint):
        _give_up_checkpoint(folders, wrong)
    if has_state(folders.checkpoint):
        layout_of(folders.checkpoint)  # without it machines would be taken for those of others
    try:
        with closing(open_log(folders.event_log)) as log:
            first = _first_offset(folders, log)
    except LogError:
        if isinstance(folders.event_log, KafkaTopic):
            raise
        first = folded_until(folders.checkpoint)  # the front has not made it yet
    check_layout(folders.checkpoint, settings.layout, settings.shuffle_partitions)
    return first


def restored(
    spark: Callable[[], SparkSession], folders: DataDir, waited: CheckpointFollower | None = None
) -> States | None:
    """Return the machines' bytes as the checkpoint has them, which waited may know; none without
    one. When Spark cannot read them either the checkpoint is moved aside, and None returned.
    """
    try:
        return stored_states(folders.checkpoint, spark) if waited is None else waited.states()
    except (Py4JJavaError, PySparkException) as error:
        if not give_up_if_lost(folders, error):
            raise
        return None


def give_up_if_lost(folders: DataDir, error: Exception) -> bool:
    """Move the checkpoint aside if an error of Spark's says that its states are lost."""
    lost = lost_states(error)
    if lost is not None:
        _give_up_checkpoint(folders, lost)
    return lost is not None


def unfolded_outcomes(log: LogLocation, folded: int) -> list[LogRecord]:
    """Return the outcomes among the events that no committed batch has folded."""
    opened = open_if_made(log)
    if opened is None:
        return []
    with closing(opened) as reader:
        records = reader.read(folded, reader.end_offset())
        return [record for record in records if record.kind in FOLLOWING_KINDS]


def _give_up_checkpoint(folders: DataDir, wrong: str) -> None:
    """Move the checkpoint aside, saying why."""
    logger.error(
        "the checkpoint %s cannot be gone on from: %s; it is kept as %s, and everything is loaded"
        " again",
        folders.checkpoint,
        wrong,
        move_aside(folders.checkpoint),
    )


def knows_no_term(machines: Iterable[Machine]) -> bool:
    """Return whether no election is known: who controls must load everything again."""
    return all(one.authority.epoch < 0 for one in machines if isinstance(one, Cluster))


def _catch_up(states: States, settings: Settings, folders: DataDir, events: range) -> None:
    """Fold what is carried out already. Raises CheckpointMismatch."""
    with closing(open_log(folders.event_log)) as log:
        end = awaited_end(log, events.stop)
        if events.stop > end:
            raise CheckpointMismatch(
                f"decisions were carried out up to offset {events.stop}, the log"
                f" {folders.event_log} ends at {end}: it is another one, or has lost a part; start"
                f" with an empty data.dir instead: the cluster is then loaded again{_UNOPENED}"
            )
        for _ in fold_range(states, log, events, settings.layout):
            pass


def _first_offset(folders: DataDir, log: LogReader) -> int:
    start, end = log.start_offset(), log.end_offset()
    if has_state(folders.checkpoint):
        return _goes_on(folders, log)
    ahead = read_ahead(folders.checkpoint)
    if ahead is not None and ahead.first is not None and ahead.first >= start:
        return ahead.first
    if not start and not _has_election(log, end):
        return 0
    if planned_batches(folders.checkpoint):
        _give_up_checkpoint(folders, "no batch of it was committed")
    return end


def _goes_on(folders: DataDir, log: LogReader) -> int:
    folded = folded_until(folders.checkpoint)
    start, end = log.start_offset(), awaited_end(log, folded)
    if not start <= folded <= end:
        raise CheckpointMismatch(
            f"the checkpoint {folders.checkpoint} has folded up to offset {folded}, the log"
            f" {folders.event_log} has {start} to {end}: it is another one, or has lost a part;"
            f" start with an empty data.dir instead: the cluster is then loaded again{_UNOPENED}"
        )
    return folded


def _has_election(log: LogReader, end: int) -> bool:
    """Return whether anything was ever decided; in a whole log an election comes first."""
    return any(one.kind == EventKind.CONTROLLER_ELECTED for one in log.read(0, end))
