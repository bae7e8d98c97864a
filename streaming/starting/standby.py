"""What a job does that waits for its turn: Spark is warm, and the machines follow the checkpoint.

The other job's checkpoint is read once; from then on the log is folded again in this process, up to
where the other has committed. So whoever takes over knows the cluster as of the checkpoint's last
batch without reading it.
"""

from __future__ import annotations

import logging
import threading

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkpoints.layout import CheckpointMismatch, compare_layout
from checkpoints.read import folded_until, has_state
from checkpoints.replay import States
from checkpoints.state_files import stored_states
from streaming.errors import ConfigurationError
from streaming.folding import fold_range
from streaming.log.api import LogError
from streaming.log.kept_reader import KeptReader
from streaming.paths import DataDir
from streaming.query import warm_up
from streaming.settings import Settings
from streaming.spark.local_fs import local_fs_jar
from streaming.spark.session import open_spark
from streaming.spark.warm_workers import WarmWorkers
from streaming.starting.job_lock import JobLock

logger = logging.getLogger(__name__)

_CORES_MAX = "spark.cores.max"
_POLL_S = 0.02
_FOLLOW_EVERY_POLLS = 50
_CHANGING = (OSError, CheckpointMismatch, LogError, PySparkException, Py4JError)
"""What reading a folder may raise that somebody else writes and tidies up meanwhile."""


class CheckpointFollower:
    """The machines of a checkpoint that another job writes, as of its last committed batch."""

    def __init__(self, spark: SparkSession, settings: Settings, folders: DataDir) -> None:
        """Know nothing yet."""
        self._spark = spark
        self._settings = settings
        self._folders = folders
        self._log = KeptReader(folders.event_log)
        self._states: States | None = None
        self._offset = 0

    def catch_up(self) -> None:
        """Fold what the other job has committed since; read the checkpoint where the log does not
        lead on from what is known.
        """
        if not has_state(self._folders.checkpoint):
            self._states, self._offset = None, 0
            return
        end = folded_until(self._folders.checkpoint)
        if self._states is None or not self._leads_on(end):
            self._read()
        elif end > self._offset:
            self._fold(self._states, end)

    def states(self) -> States:
        """Hand over the machines' bytes as of the checkpoint's last batch, which nobody may change
        any more; none without a checkpoint. Nothing is kept: a job lives long.
        """
        try:
            end = folded_until(self._folders.checkpoint)
            self.catch_up()
            if self._offset < end:
                self.catch_up()
        finally:
            self.close()
        states, self._states = self._states, None
        return states or {}

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()

    def _leads_on(self, end: int) -> bool:
        with self._log.opened() as log:
            return log.start_offset() <= self._offset <= end <= log.end_offset()

    def _read(self) -> None:
        _need_layout(self._settings, self._folders)
        checkpoint = self._folders.checkpoint
        before = folded_until(checkpoint)
        states = stored_states(checkpoint, lambda: self._spark)
        if folded_until(checkpoint) == before:  # else it is not known which batch was read
            self._states, self._offset = states, before
            logger.info("%d machines, as of event %d", len(states), before)

    def _fold(self, states: States, end: int) -> None:
        with self._log.opened() as log:
            settings, events = self._settings, range(self._offset, end)
            for batch in fold_range(states, log, events, settings.layout):
                self._offset = batch.end_offset


def stand_by(
    settings: Settings, folders: DataDir, lock: JobLock, stop: threading.Event
) -> CheckpointFollower | None:
    """Wait, with Spark warm, until the lock is ours, and return what is then known of the machines;
    None when it was free.

    Raises ConfigurationError where the other job has all cores of the cluster, or its checkpoint is
    one that this job could not go on from, also when that turns out later.
    """
    if lock.try_acquire():
        return None
    _need_layout(settings, folders)
    logger.info("another process is the job: waiting until it is gone")
    spark = open_spark(settings, local_fs_jar())
    _need_own_cores(spark)
    warm_up(spark, settings)
    follower = CheckpointFollower(spark, settings, folders)
    workers = WarmWorkers(spark, settings.shuffle_partitions)
    if _wait_for_turn(lock, follower, workers, stop):
        logger.info("the other job is gone: taking over")
    else:
        follower.close()
    return follower


def _need_layout(settings: Settings, folders: DataDir) -> None:
    """Raise ConfigurationError now, and not at the take-over, where the checkpoint of the other job
    was made with other settings.
    """
    try:
        compare_layout(folders.checkpoint, settings.layout, settings.shuffle_partitions)
    except CheckpointMismatch as error:
        raise ConfigurationError(str(error)) from error


def _need_own_cores(spark: SparkSession) -> None:
    """Raise ConfigurationError on a standalone cluster that gives each application all cores."""
    conf = spark.sparkContext.getConf()
    if conf.get("spark.master", "").startswith("spark://") and not conf.contains(_CORES_MAX):
        raise ConfigurationError(
            f"{_CORES_MAX} is not set: one of a pair would have all cores of a standalone cluster,"
            " and the other none; set it for both in spark-defaults.conf to at most half of them"
        )


def _wait_for_turn(
    lock: JobLock, follower: CheckpointFollower, workers: WarmWorkers, stop: threading.Event
) -> bool:
    """Follow the other job until its lock is ours; False when we are asked to stop before."""
    polls = 0
    while not stop.wait(_POLL_S):
        if lock.try_acquire():
            return True
        if polls % _FOLLOW_EVERY_POLLS == 0:
            _follow(follower)
            workers.look()
        polls += 1
    return False


def _follow(follower: CheckpointFollower) -> None:
    try:
        follower.catch_up()
    except _CHANGING as error:
        logger.info("the checkpoint cannot be followed just now: %s", error)
