"""How the driver's JVM is started: early, and with Python workers that are quick to start."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext

from streaming.embedded.ivy import cache_folder
from streaming.settings import Settings
from streaming.spark.conf import is_local, place_conf, query_conf
from streaming.spark.local_fs import local_fs_jar

logger = logging.getLogger(__name__)

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in the environment of a Python program that spark-submit starts: the JVM runs already."""
_SPARK_HOME = "SPARK_HOME"
_LINKED = ("bin", "jars")
_END_TIMEOUT_S = 120.0
_started: list[threading.Thread] = []
ARCHIVE = "spark-classes.jsa"
"""In the Spark home: what `helmstream prepare` has made of Spark's classes."""


def start_jvm(settings: Settings) -> None:
    """Start the JVM in the background, where open_spark finds it; for a process that is the job.

    Until Spark's gateway listens this process has enough to import. If it fails, open_spark starts
    the JVM again and raises.
    """
    if _SUBMITTED in os.environ:
        return
    option = archive_option(settings)
    if is_local(settings.spark_master) and local_fs_jar() is None:
        logger.info("each micro-batch takes longer until `helmstream prepare` has fetched a jar")
    start = threading.Thread(
        target=_launch_jvm, args=[settings, option], name="jvm-start", daemon=True
    )
    start.start()
    _started.append(start)


def await_jvm() -> None:
    """Wait until the JVM that start_jvm has begun to start is there, if it has begun."""
    for start in _started:
        start.join()


def archive_option(settings: Settings) -> str:
    """Let this process use a Spark home of our own, and return the JVM's option for the archive in
    it, "" when there is none.
    """
    home = use_own_home() if is_local(settings.spark_master) else None
    archive = None if home is None else home / ARCHIVE
    return f"-XX:SharedArchiveFile={archive}" if archive is not None and archive.exists() else ""


def launch_conf(settings: Settings, jvm_option: str) -> SparkConf:
    """Return what the JVM is started with, which has one more option."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(prepare_launch(settings, local_fs_jar(), jvm_option).items()))
    return conf


def _launch_jvm(settings: Settings, jvm_option: str) -> None:
    SparkContext._ensure_initialized(conf=launch_conf(settings, jvm_option))


def end_jvm() -> None:
    """End the JVM that this process has started and wait until it is gone."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_END_TIMEOUT_S)


def prepare_launch(
    settings: Settings, local_fs_jar: Path | None, jvm_option: str = ""
) -> dict[str, str]:
    """Say in the environment which Python workers run; return Spark's settings."""
    submitted = _SUBMITTED in os.environ
    if submitted or not is_local(settings.spark_master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    place = {} if submitted else place_conf(settings, local_fs_jar, jvm_option)
    return query_conf(settings) | place


def use_own_home() -> Path | None:
    """Let this process and its children use a Spark home of our own; None when another one is set,
    or there cannot be one.
    """
    if _SPARK_HOME in os.environ:
        return None
    home = spark_home(cache_folder())
    if home is not None:
        os.environ[_SPARK_HOME] = str(home)
    return home


def spark_home(cache: Path) -> Path | None:
    """Return a Spark home, made in the cache, that has no `python/lib/pyspark.zip`; None when there
    is no Spark in the pyspark that is installed, or the cache cannot be written.

    Spark puts that file before everything else on its workers' path. It holds sources only, which
    each worker process compiles: half a second of CPU, six times until the first batch is over.
    Without it workers import pyspark as it is installed, as this process does.
    """
    installed = Path(pyspark.__file__).resolve().parent
    if not all((installed / name).is_dir() for name in _LINKED):
        return None
    place = hashlib.sha256(str(installed).encode()).hexdigest()[:8]
    home = cache / f"spark-{pyspark.__version__}-{place}"
    if not home.is_dir():
        try:
            _link(installed, home)
        except OSError as error:
            logger.warning("Python workers will take longer to start: %s", error)
            return None
    return home


def _link(installed: Path, home: Path) -> None:
    """Make the home by one rename, so that one that exists is complete."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}-") as scratch:
        made = Path(scratch) / home.name
        made.mkdir()
        for name in _LINKED:
            (made / name).symlink_to(installed / name)
        try:
            made.rename(home)
        except OSError:
            if not home.is_dir():  # else another process was first
                raise
