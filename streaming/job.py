"""The job: the event log folded by a streaming query into decisions, and the decisions carried out.

    event log -> route -> applyInPandasWithState (one machine a group) -> foreachBatch -> sinks
        ^                                                                                  |
        '---------------------------- outcomes are events again ---------------------------'

One process, started and supervised by `helmstream run`. It keeps nothing that its checkpoint, the
logs and ZooKeeper do not have, so it may be killed at any point and started again.
"""

from __future__ import annotations

import logging
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.damage import lost_states
from checkpoints.read import has_state, read_machines
from state.step import Machine
from streaming.beginning import begin, give_up_checkpoint, knows_no_term
from streaming.garbage import collect_rarely
from streaming.image.restore import image_of, timers_of, unfinished_deletions
from streaming.job_lock import JobLock
from streaming.local_fs import local_fs_jar
from streaming.log.api import LogError, LogRecord, NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.location import KafkaTopic, LogLocation
from streaming.log.publisher import published
from streaming.log.recorded import open_log
from streaming.log.source import SOURCE_NAME
from streaming.operator import decide
from streaming.paths import DataDir
from streaming.router import route
from streaming.settings import Settings
from streaming.sinks.assembly import Sinks, open_sinks
from streaming.sinks.batch import opened
from streaming.sinks.outcomes import OUTCOME_KINDS
from streaming.spark_conf import is_local
from streaming.spark_session import jvm_pid, open_spark
from streaming.standby import Follower, wait_for_turn
from streaming.warm_workers import WarmWorkers

logger = logging.getLogger(__name__)

_POLL_S = 0.5
_FIRST_BATCH_POLL_S = 0.02
_WARM_UP_TIMEOUT_S = 60


def run_job(settings: Settings, *, standby: bool = False) -> int:
    """Run the query until SIGTERM; return the exit code. An error of the query is raised.

    standby: wait, with Spark warm, while another process is the job of the data folder; without it
    JobLocked is raised then.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    folders = DataDir(settings.data_dir, settings.event_log_url)
    with JobLock(folders.job_lock) as lock:
        waited = _stand_by(settings, folders, lock, stop) if standby else None
        if waited is None:
            lock.take()
        if not stop.is_set():
            _be_the_job(settings, folders, lock, stop, waited)
    return 0


def _stand_by(
    settings: Settings, folders: DataDir, lock: JobLock, stop: threading.Event
) -> Follower | None:
    """Return what is known of the machines once the lock is ours, None when it was free."""
    if lock.try_take():
        return None
    logger.info("another process is the job: waiting until it is gone")
    spark = open_spark(settings, local_fs_jar())
    warm_up(spark, settings)
    follower = Follower(spark, settings, folders)
    workers = WarmWorkers(spark, settings.shuffle_partitions)
    if wait_for_turn(lock, follower, workers, stop):
        logger.info("the other job is gone: taking over")
    return follower


def _be_the_job(
    settings: Settings,
    folders: DataDir,
    lock: JobLock,
    stop: threading.Event,
    waited: Follower | None,
) -> None:
    folded = begin(settings, folders)
    spark = open_spark(settings, local_fs_jar())
    lock.note_jvm(jvm_pid(spark))
    workers = WarmWorkers(spark, settings.shuffle_partitions)
    if waited is None:
        workers.start()
    if (found := restored(spark, folders, waited)) is None:
        folded = begin(settings, folders)
    machines = found or {}
    sinks = open_sinks(
        settings,
        folders,
        image_of(machines.values()),
        timers_of(machines.values()),
        without_term=knows_no_term(machines.values()),
        unfolded=unfolded_events(folders.event_log, folded),
        stopped=stop,
    )
    try:
        sinks.pipeline.resend(folded, opened(unfinished_deletions(machines.values())))
        idle = not waiting_events(folders.event_log, folded)
        fresh = idle and not has_state(folders.checkpoint)
        if not fresh:
            sinks.link.start()
        query = start_query(spark, settings, folders, sinks, folded)
        if fresh:
            # The front claims the controller role once we are connected.
            wait_for_first_batch(query, stop)
            sinks.link.start()
        elif idle and waited is None:
            warm_up(spark, settings)
        collect_rarely()
        with published(folders.decisions, settings.decision_stream_url):
            follow(query, stop, workers)
    finally:
        sinks.close()
        spark.stop()
    lock.done()


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
        give_up_checkpoint(folders, lost)
        return None


def wait_for_first_batch(query: StreamingQuery, stop: threading.Event) -> None:
    """Wait for the batch that a query without a checkpoint runs on an empty log too: what comes
    after it finds code compiled and workers waiting. On a machine so busy that it does not come the
    job goes on without.
    """
    deadline = time.monotonic() + _WARM_UP_TIMEOUT_S
    while query.isActive and query.lastProgress is None and time.monotonic() < deadline:
        if stop.wait(_FIRST_BATCH_POLL_S):
            return


def warm_up(spark: SparkSession, settings: Settings) -> None:
    """Run one batch of the query on a log of its own, so that code is compiled and workers wait.

    On a machine so busy that it fails, the job starts cold.
    """
    # Executors elsewhere see no folder of this machine but the data folder.
    master = spark.sparkContext.getConf().get("spark.master", "local")
    place = None if is_local(master) else settings.data_dir
    with tempfile.TemporaryDirectory(
        prefix="warm-up-", dir=place, ignore_cleanup_errors=True
    ) as scratch:
        trial = DataDir(Path(scratch))
        with EmbeddedLogWriter(trial.events) as log:
            log.append([NewRecord("warm_up", "", b"{}")])
        decisions = decide(route(read_events(spark, settings, trial.events), settings.slots))
        writer = decisions.writeStream.option("checkpointLocation", str(trial.checkpoint))
        writer = writer.foreachBatch(lambda one, _: one.toArrow()).trigger(availableNow=True)
        query = writer.start()
        try:
            query.awaitTermination(_WARM_UP_TIMEOUT_S)
        except StreamingQueryException as error:
            logger.warning("the query could not be warmed up: %s", error.getMessage())
        finally:
            query.stop()


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


def start_query(
    spark: SparkSession,
    settings: Settings,
    folders: DataDir,
    sinks: Sinks,
    first: int | None = None,
) -> StreamingQuery:
    """Start the streaming query: the whole flow. first: the first event that it folds when it has
    no checkpoint.
    """
    events = read_events(spark, settings, folders.event_log, first)
    decisions = decide(route(events, settings.slots, settings.group_slots, settings.machines))
    return (
        decisions.writeStream.outputMode("append")
        .option("checkpointLocation", str(folders.checkpoint))
        .foreachBatch(carry_out(sinks))
        .start()
    )


def read_events(
    spark: SparkSession, settings: Settings, log: LogLocation, first: int | None = None
) -> DataFrame:
    """Return the event log as a stream; first: where it begins unless a checkpoint says so, the
    log's start by default.
    """
    reader = spark.readStream.format(SOURCE_NAME).option("path", str(log))
    reader = reader.option("max_events_per_batch", settings.event_log_batch_max_events)
    return (reader if first is None else reader.option("start_offset", first)).load()


def carry_out(sinks: Sinks) -> Callable[[DataFrame, int], None]:
    """Return the function that takes each micro-batch, with exactly one action, through the
    sinks.
    """

    def process(decisions: DataFrame, batch_id: int) -> None:
        sinks.pipeline.process(batch_id, decisions.toArrow())

    return process


def follow(query: StreamingQuery, stop: threading.Event, workers: WarmWorkers) -> None:
    """Wait until the query ends, which raises its error, or until we are asked to stop."""
    while not stop.wait(_POLL_S):
        if not query.isActive:
            query.awaitTermination()
            return
        workers.look()
    query.stop()
