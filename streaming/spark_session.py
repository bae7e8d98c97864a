"""The Spark session of the job, with the settings that make a small micro-batch short.

What each of them saves was measured, see docs/adr/0003-spark-settings.md.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streaming.log.source import HelmstreamLogSource
from streaming.settings import Settings

_CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# The JVM plans and carries bytes; without the second compiler it starts in half the time, and a
# restart counts against the lease.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in the environment of a Python program that spark-submit starts: the JVM runs already."""
_STATE_STORES = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def open_spark(settings: Settings, local_fs_jar: Path | None = None) -> SparkSession:
    """Return a session with the event log's source registered.

    local_fs_jar: a Hadoop file system for local disks that forks no `chmod` per file, or None; for
    executors in this process only. In a program that spark-submit started, where Spark runs is
    spark-submit's to say, and its options go before `spark.master` and `spark.driver.memory`.
    """
    submitted = _SUBMITTED in os.environ
    if submitted or not is_local(settings.spark_master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName("helmstream")
    conf = query_conf(settings)
    if not submitted:
        conf |= place_conf(settings, local_fs_jar)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    spark.dataSource.register(HelmstreamLogSource)
    return spark


def jvm_pid(spark: SparkSession) -> int:
    """Return the process id of the driver's JVM."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def is_local(master: str) -> bool:
    """Return whether executors are threads of the driver."""
    return re.match(r"local(\[|$)", master) is not None


def place_conf(settings: Settings, local_fs_jar: Path | None) -> dict[str, str]:
    """Return where the driver and its executors run, and with what."""
    conf = {
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": _JVM_OPTIONS,
        "spark.executor.extraJavaOptions": _JVM_OPTIONS,
    }
    if settings.spark_master.startswith("local"):
        # Executors of a cluster's master need an address of the driver that they can reach.
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if local_fs_jar is not None and is_local(settings.spark_master):
        conf["spark.driver.extraClassPath"] = str(local_fs_jar)
        conf["spark.hadoop.fs.file.impl"] = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
    return conf


def query_conf(settings: Settings) -> dict[str, str]:
    """Return what makes the query what it is, wherever it runs."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.sql.streaming.stateStore.providerClass": _STATE_STORES[settings.state_store],
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": str(settings.checkpoint_batches_retained),
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.log.structuredLogging.enabled": "false",
    }
