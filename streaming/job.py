"""The job: the event log folded by a streaming query into decisions, and the decisions carried out.

    event log -> route -> applyInPandasWithState (one machine a key) -> foreachBatch -> sinks
        ^                                                                                  |
        '---------------------------- outcomes are events again ---------------------------'

While Spark starts, and while the cluster is loaded, `streaming.starting.head_starts` folds and
carries out what comes.
One process, started and supervised by `helmstream run`. It keeps nothing that its checkpoint, the
logs and ZooKeeper do not have, so it may be killed at any point and started again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.machine_format import decode_machine
from state.step import Machine
from streaming.image.restore import image_of, paused_of, timers_of, unfinished_deletions
from streaming.log.publisher import published
from streaming.operator import decide
from streaming.paths import DataDir
from streaming.process.garbage import collect_rarely
from streaming.process.open_files import JOB_FILES, allow_open_files
from streaming.process.stop_signals import on_stop_signal
from streaming.query import ProcessBatch, for_each_batch, read_events
from streaming.router import route
from streaming.settings import Settings
from streaming.sinks.appender import JobStopping
from streaming.sinks.assembly import open_sinks
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.spark.local_fs import local_fs_jar
from streaming.spark.session import jvm_pid, open_spark
from streaming.spark.warm_workers import WarmWorkers
from streaming.starting.beginning import begin, give_up_if_lost, knows_no_term, unfolded_outcomes
from streaming.starting.head_starts import HeadStarts
from streaming.starting.job_lock import JobLock
from streaming.starting.standby import CheckpointFollower, stand_by

logger = logging.getLogger(__name__)

_POLL_S = 0.5


def start_query(
    spark: SparkSession,
    settings: Settings,
    folders: DataDir,
    process_batch: ProcessBatch,
    first: int | None = None,
) -> StreamingQuery:
    """Start the streaming query: the whole flow. first: the first event that it folds when it has
    no checkpoint.
    """
    max_events = settings.event_log_batch_max_events
    events = read_events(spark, folders.event_log, settings.layout, max_events, first=first)
    routed = route(events, settings.layout)
    return for_each_batch(decide(routed), folders.checkpoint, process_batch)


def run_job(settings: Settings, *, standby: bool = False) -> int:
    """Run the query until a signal comes; return the exit code. An error of the query is raised.

    standby: wait, with Spark warm, while another process is the job of the data folder; without it
    JobLocked is raised then.
    """
    stop = threading.Event()
    on_stop_signal(lambda _: stop.set())
    allow_open_files(JOB_FILES)
    folders = DataDir(settings.data_dir, settings.event_log_url)
    with JobLock(folders.job_lock) as lock:
        waited = stand_by(settings, folders, lock, stop) if standby else None
        if waited is None:
            lock.acquire()
        if not stop.is_set():
            try:
                _run_with_lock(settings, folders, lock, stop, waited)
            except JobStopping as error:  # the front was stopped with us and is gone already
                logger.info("the next job does what is left: %s", error)
    return 0


def _run_with_lock(
    settings: Settings,
    folders: DataDir,
    lock: JobLock,
    stop: threading.Event,
    waited: CheckpointFollower | None,
) -> None:
    """Be the job, in this order; what is open is closed in the opposite one.

    1. Read where to begin, and with which machines; only some checkpoints need Spark for that.
    2. Open the sinks, and queue for the brokers what the job before may not have told them.
    3. Connect to the front, which claims the controller role then.
    4. Begin to fold, in this process.
    5. Open Spark, start the query, and watch it until we are asked to stop.
    """
    with ExitStack() as closing:
        spark = _LazySpark(settings, lock)
        closing.callback(spark.stop)
        if waited is not None:
            spark.session()  # it is there already: whoever takes the lock next has to know of it
        beginning = begin(settings, folders, spark.session, waited)
        machines = [decode_machine(data) for data in beginning.states.values()]
        sinks = open_sinks(
            settings,
            folders,
            _decided_so_far(machines),
            folded=beginning.offset,
            unfolded=unfolded_outcomes(folders.event_log, beginning.offset),
            stopped=stop,
        )
        closing.callback(sinks.close)
        head_starts = HeadStarts(settings, folders, sinks.pipeline, beginning, stop)
        closing.callback(head_starts.close)
        sinks.pipeline.resend(beginning.offset, unfinished_deletions(machines))
        machines.clear()
        collect_rarely()
        sinks.link.start()
        head_starts.start()
        workers = WarmWorkers(spark.session(), settings.shuffle_partitions)
        if waited is None:  # who waited has warmed them
            workers.start()
        head_starts.check()
        process_batch, first = head_starts.process_batch, beginning.committed
        query = start_query(spark.session(), settings, folders, process_batch, first)
        checks = (head_starts.check, sinks.link.check)
        _serve(query, settings, folders, stop=stop, workers=workers, checks=checks)
    lock.done()


class _LazySpark:
    """The session, opened when it is first needed."""

    def __init__(self, settings: Settings, lock: JobLock) -> None:
        self._settings = settings
        self._lock = lock
        self._opened: SparkSession | None = None

    def session(self) -> SparkSession:
        if self._opened is None:
            self._opened = open_spark(self._settings, local_fs_jar())
            self._lock.note_jvm(jvm_pid(self._opened))
        return self._opened

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.stop()


def _decided_so_far(machines: Sequence[Machine]) -> DecidedSoFar:
    return DecidedSoFar(
        image_of(machines),
        timers_of(machines),
        paused=paused_of(machines),
        without_term=knows_no_term(machines),
    )


def _serve(
    query: StreamingQuery,
    settings: Settings,
    folders: DataDir,
    *,
    stop: threading.Event,
    workers: WarmWorkers,
    checks: tuple[Callable[[], None], ...],
) -> None:
    """Watch the query, as `_follow`, and publish what is decided meanwhile; a checkpoint that it
    finds lost is moved aside for the next job.
    """
    with published(folders.decisions, settings.decision_stream_url, settings.log_retention_ms):
        try:
            _follow(query, stop, workers, checks)
        except StreamingQueryException as error:
            give_up_if_lost(folders, error)
            raise


def _follow(
    query: StreamingQuery,
    stop: threading.Event,
    workers: WarmWorkers,
    checks: tuple[Callable[[], None], ...],
) -> None:
    """Wait until the query ends, which raises its error, or until we are asked to stop; checks
    raise the errors of other threads.
    """
    while not stop.wait(_POLL_S):
        for check in checks:
            check()
        if not query.isActive:
            query.awaitTermination()
            return
        workers.look()
    query.stop()
