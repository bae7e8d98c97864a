"""The Spark session of the job."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from streaming.log.source import HelmstreamLogSource
from streaming.settings import Settings
from streaming.spark.jvm import await_jvm, prepare_launch


def open_spark(settings: Settings, local_fs_jar: Path | None = None) -> SparkSession:
    """Return a session with the event log's source registered.

    local_fs_jar: as for streaming.spark.conf.place_conf. In a program that spark-submit started,
    where Spark runs is spark-submit's to say, and its options go before `spark.master` and
    `spark.driver.memory`.
    """
    await_jvm()
    builder = SparkSession.Builder().appName("helmstream")
    for key, value in prepare_launch(settings, local_fs_jar).items():
        builder = builder.config(key, value)
    with _sigint_kept():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    _let_jvm_end(spark)
    spark.dataSource.register(HelmstreamLogSource)
    return spark


def _let_jvm_end(spark: SparkSession) -> None:
    """Take the end of the JVM's connection for accumulators, which are not used, for no error:
    pyspark would print a traceback each time.
    """
    server: Any = spark.sparkContext._accumulatorServer
    report = server.handle_error

    def handle_error(request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), EOFError):
            report(request, client_address)

    server.handle_error = handle_error


@contextmanager
def _sigint_kept() -> Iterator[None]:
    """Put back what SIGINT does: a SparkContext that is made in the main thread takes it over, and
    would raise KeyboardInterrupt in the midst of what its process does to stop in order.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def jvm_pid(spark: SparkSession) -> int:
    """Return the process id of the driver's JVM."""
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())
