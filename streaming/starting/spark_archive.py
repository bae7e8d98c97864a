"""Archives Spark's classes as a JVM has loaded them; the next JVM maps them and reads no jars.

That is the JDK's dynamic class-data archive (JEP 350). A JVM that cannot use it, because it is
another Java or the jars are others, says so and starts without.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.query import warm_up
from streaming.settings import Settings
from streaming.spark.apart import launch_jvm_apart
from streaming.spark.conf import is_local
from streaming.spark.jvm import ARCHIVE, end_jvm, use_own_home
from streaming.spark.local_fs import fetch_local_fs_jar, local_fs_jar
from streaming.spark.session import open_spark

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Else there is a line for each class that cannot be archived, hundreds of them."""


def archive_classes(settings: Settings) -> Path:
    """Run a batch of the query and archive the classes that took; return the archive.

    The jar that the job runs with is fetched before.

    Raises SparkNotStarted, and ConfigurationError where the job does not start Spark itself, or in
    a Spark home that is not ours.
    """
    home = use_own_home() if is_local(settings.spark_master) else None
    if home is None:
        raise ConfigurationError(
            f"spark.master is {settings.spark_master!r}: classes are archived for local[...] only,"
            " without SPARK_HOME in the environment and with a cache folder that can be written"
        )
    fetch_local_fs_jar()
    with tempfile.TemporaryDirectory(dir=home, prefix=f".{ARCHIVE}-") as scratch:
        made = Path(scratch) / ARCHIVE
        with tempfile.TemporaryFile() as printed:
            launch_jvm_apart(settings, f"-XX:ArchiveClassesAtExit={made} {_QUIET}", printed)
        spark = open_spark(settings, local_fs_jar())
        warm_up(spark, settings)
        spark.stop()
        end_jvm()
        return made.replace(home / ARCHIVE)
