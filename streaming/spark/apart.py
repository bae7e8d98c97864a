"""Spark for a command: what its JVM prints stays off the terminal, and only the command ends it.

Spark warns at each start of what is as it should be. What goes wrong is raised as well.
"""

from __future__ import annotations

import os
from typing import IO

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.errors import HelmstreamError
from streaming.settings import Settings
from streaming.spark.jvm import archive_option, launch_conf
from streaming.spark.local_fs import local_fs_jar
from streaming.spark.session import open_spark

_SAID_BYTES = 1_000


class SparkNotStarted(HelmstreamError):
    """The JVM ended before its gateway listened."""


def open_spark_apart(settings: Settings, printed: IO[bytes]) -> SparkSession:
    """Return a session whose JVM prints to a file; raises SparkNotStarted."""
    launch_jvm_apart(settings, archive_option(settings), printed)
    return open_spark(settings, local_fs_jar())


def launch_jvm_apart(settings: Settings, jvm_option: str, printed: IO[bytes]) -> None:
    """Start a JVM with one more option, unless there is one, and wait until its gateway listens.

    It prints to a file. It is in a session of its own: a signal to all processes of the command,
    as `timeout` sends, leaves it to the command to stop in order. Raises SparkNotStarted.
    """
    if SparkContext._gateway is not None:
        return
    conf = launch_conf(settings, jvm_option)
    apart = {"stdout": printed, "stderr": printed, "start_new_session": True}
    try:
        gateway = launch_gateway(conf, apart)  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise SparkNotStarted(f"Spark's JVM did not start: {_end_of(printed)}") from error
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _end_of(printed: IO[bytes]) -> str:
    """Return the end of what was printed, in one line."""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _SAID_BYTES))
    return " ".join(printed.read().decode(errors="replace").split()) or "it printed nothing"
