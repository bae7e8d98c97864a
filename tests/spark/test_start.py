"""What makes a job's start quick: workers that compile nothing, classes that were archived."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from streaming.embedded.ivy import CACHE_VARIABLE, cache_folder
from streaming.spark.jvm import ARCHIVE, spark_home

pytestmark = pytest.mark.spark
WAIT_S = 300

STARTED = """
import json, sys
import pyarrow as pa
from pathlib import Path
from streaming.spark.local_fs import local_fs_jar
from streaming.settings_loader import load_settings
from streaming.spark.jvm import start_jvm
from streaming.spark.session import jvm_pid, open_spark

def where_pyspark_is(batches):
    import pyspark
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"path": [pyspark.__file__]})

settings = load_settings()
start_jvm(settings)
spark = open_spark(settings, local_fs_jar())
[row] = spark.range(0, 1, 1, 1).mapInArrow(where_pyspark_is, "path string").collect()
maps = Path(f"/proc/{jvm_pid(spark)}/maps").read_text()
spark.stop()
print(json.dumps({"worker": row["path"], "archived": sys.argv[1] in maps}))
"""


@pytest.fixture
def environment(tmp_path):
    """The environment of a process whose cache has the jars that were fetched before, no more."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for fetched in cache_folder().glob("hadoop-*"):
        (cache / fetched.name).symlink_to(fetched)
    kept = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    return {**kept, CACHE_VARIABLE: str(cache)}


def run(arguments, environment) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


def started(environment) -> dict:
    return json.loads(run(["-c", STARTED, ARCHIVE], environment).splitlines()[-1])


def test_a_spark_home_is_made_once_and_has_no_sources(tmp_path):
    home = spark_home(tmp_path / "cache")
    installed = Path(pyspark.__file__).parent
    assert (home / "jars").resolve() == (installed / "jars").resolve()
    assert sorted(one.name for one in home.iterdir()) == ["bin", "jars"]
    assert spark_home(tmp_path / "cache") == home
    assert [one.name for one in home.parent.iterdir()] == [home.name]


def test_there_is_no_home_where_none_can_be_made(tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert spark_home(tmp_path / "cache") is None


@pytest.mark.slow
@pytest.mark.timeout(3 * WAIT_S)
def test_workers_import_what_is_installed_and_the_jvm_maps_what_was_archived(environment):
    before = started(environment)
    assert Path(before["worker"]).samefile(pyspark.__file__)
    assert not before["archived"]
    run(["-m", "streaming.cli", "prepare"], environment)
    assert started(environment) == {**before, "archived": True}
