"""How the driver's JVM is started: early, and with Python workers that are quick to start."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
import threading
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext

from streaming.embedded.ivy import cache_folder
from streaming.local_fs import local_fs_jar
from streaming.settings import Settings
from streaming.spark_conf import is_local, place_conf, query_conf

logger = logging.getLogger(__name__)

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in the environment of a Python program that spark-submit starts: the JVM runs already."""
_SPARK_HOME = "SPARK_HOME"
_LINKED = ("bin", "jars")


def start_jvm(settings: Settings) -> None:
    """Start the JVM in the background, where open_spark finds it; for a process that is the job.

    Until Spark's gateway listens this process has enough to import. If it fails, open_spark starts
    the JVM again and raises.
    """
    if _SUBMITTED in os.environ:
        return
    if is_local(settings.spark_master) and _SPARK_HOME not in os.environ:
        home = spark_home(cache_folder())
        if home is not None:
            os.environ[_SPARK_HOME] = str(home)
    threading.Thread(target=_start_jvm, args=[settings], name="jvm-start", daemon=True).start()


def _start_jvm(settings: Settings) -> None:
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(prepare_launch(settings, local_fs_jar()).items()))
    SparkContext._ensure_initialized(conf=conf)


def prepare_launch(settings: Settings, local_fs_jar: Path | None) -> dict[str, str]:
    """Say in the environment which Python workers run; return Spark's settings."""
    submitted = _SUBMITTED in os.environ
    if submitted or not is_local(settings.spark_master):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return query_conf(settings) | ({} if submitted else place_conf(settings, local_fs_jar))


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
