"""The settings of the job's Spark, which make a start and a small micro-batch short.

What each of them saves was measured, see docs/adr/0003-spark-settings.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from streaming.settings import Settings

_CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# The JVM plans and carries bytes; without the second compiler it starts in half the time, and a
# restart counts against the lease. All of Spark's classes fit into the metaspace that is allowed
# here before it is collected for the first time; by default it is four times on the way there.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
_STATE_STORES = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def is_local(master: str) -> bool:
    """Return whether executors are threads of the driver."""
    return re.match(r"local(\[|$)", master) is not None


def place_conf(
    settings: Settings, local_fs_jar: Path | None, jvm_options: str = ""
) -> dict[str, str]:
    """Return where the driver and its executors run, and with what.

    local_fs_jar: a Hadoop file system for local disks that forks no `chmod` per file, or None; for
    executors in this process only. jvm_options: more of them for the driver.
    """
    conf = {
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": f"{_JVM_OPTIONS} {jvm_options}".strip(),
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
