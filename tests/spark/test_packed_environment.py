"""Executors whose Python, with our code in it, came along with what was submitted."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from checkpoints.replay import Digest
from streaming.embedded.process import ChildProcess, log_tail
from streaming.paths import DataDir
from tests.fixtures.digests import digest_of
from tests.fixtures.folding import fold_log
from tests.fixtures.spark_cluster import kill_driver, standalone, submit
from tests.logs.state_logs import long_log
from tests.spark.query_run import recorded

ROOT = Path(__file__).parents[2]
WAIT_S = 300.0
INSTALL_S = 900.0
USED = ("numpy", "orjson", "pyarrow")
"""Libraries with code of their own, which show where a process has loaded them from."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def run(*command: object) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, done.stderr


def environment(folder: Path) -> tuple[Path, Path]:
    """Make an environment as docs/spark-cluster.md says: (its folder, the archive of it)."""
    made, archive = folder / "environment", folder / "environment.tar.gz"
    build = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder / "dist")
    run(sys.executable, "-m", "pip", "wheel", *build, ROOT)
    (wheel,) = (folder / "dist").glob("helmstream-*.whl")
    run(sys.executable, "-m", "venv", made)
    install = (made / "bin" / "python", "-m", "pip", "install")
    run(*install, "--no-deps", "--require-hashes", "-r", ROOT / "requirements-run.lock")
    run(*install, "--no-deps", wheel, "venv-pack==0.2.0")
    without = ("--exclude", "*/site-packages/pyspark/*")
    run(made / "bin" / "venv-pack", "--prefix", made, "--output", archive, *without)
    return made, archive


def loaded(spark: Path) -> set[str]:
    """The files of libraries that Python processes of executors have loaded."""
    found: set[str] = set()
    for process in psutil.process_iter():
        try:
            if "python" in process.name() and Path(process.cwd()).is_relative_to(spark):
                found.update(one.path for one in process.memory_maps())
        except psutil.Error:
            continue
    return found


def watch(driver: ChildProcess, spark: Path) -> set[str]:
    """Wait for a driver's end; what its executors' Python loaded meanwhile."""
    found: set[str] = set()
    deadline = time.monotonic() + WAIT_S
    while driver.running:
        assert time.monotonic() < deadline, log_tail(driver.log_path)
        found |= loaded(spark)
        time.sleep(0.1)
    assert driver.return_code == 0, log_tail(driver.log_path)
    return found


def test_executors_use_the_environment_that_was_sent(tmp_path: Path) -> None:
    made, archive = environment(tmp_path / "made")
    place = tmp_path / "driver"
    place.mkdir()
    # Spark starts Python beside the driver too, by the same relative path.
    (place / "environment").symlink_to(made)
    log = long_log(11, plausible=True)
    folders = recorded(tmp_path / "shared" / "log", log)
    out = DataDir(tmp_path / "shared" / "out")
    options = ["--archives", f"{archive}#environment"]
    options += ["--conf", "spark.pyspark.python=./environment/bin/python"]
    config = tmp_path / "cluster.toml"
    config.write_text('"slots" = 4\n"shuffle.partitions" = 2\n')
    words = ["replay", str(folders.root), "--out", str(out.root)]
    words += ["--config", str(config), "--batch", "20"]
    spark = tmp_path / "spark"
    with standalone(spark, workers=2) as master:
        driver = submit(place, master, options, words)
        try:
            files = watch(driver, spark)
        finally:
            kill_driver(driver)
    wanted = Digest()
    wanted.update(fold_log(log, slots=16)[1])
    assert digest_of(out.decisions) == wanted.hexdigest()
    for name in USED:
        places = {Path(one) for one in files if f"/site-packages/{name}/" in one}
        sent = {one for one in places if one.is_relative_to(spark) and "environment" in one.parts}
        assert places == sent
        assert {one.relative_to(spark).parts[0] for one in sent} == {"worker-0", "worker-1"}
