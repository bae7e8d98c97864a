"""The query on executors of their own decides what a local fold decides, killed drivers included.

Code comes packed, with spark-submit; the checkpoint is on a folder that all can see.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.replay import Digest, fold_log
from state.events import Event
from streaming.embedded.process import ChildProcess, log_tail
from streaming.log.api import LogError
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.replay.decisions import digest_of
from tests.fixtures.spark_cluster import SPARK_HOME, cluster_environment, package, standalone
from tests.property.state_logs import long_log
from tests.spark.query_run import recorded

SLOTS, PARTITIONS = 4, 2
WAIT_S = 300.0
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROOT = Path(__file__).parents[2]
PROGRAM = "from streaming.cli import main\n\nmain()\n"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Submitter:
    """Submits `helmstream replay` of one log into one folder."""

    def __init__(self, folder: Path, log: list[Event]) -> None:
        self.folder = folder
        self.drivers: list[ChildProcess] = []
        self.out = DataDir(folder / "shared" / "out")
        self._log = recorded(folder / "shared" / "log", log).root
        self._code = package(ROOT, folder / "helmstream.zip")
        self._config = folder / "cluster.toml"
        self._config.write_text(f'"slots" = {SLOTS}\n"shuffle.partitions" = {PARTITIONS}\n')

    def submit(self, master: str, where: str, *, batch: int) -> ChildProcess:
        """Start a driver in a folder of its own, as another machine would."""
        place = self.folder / where
        place.mkdir()
        program = place / "helmstream.py"
        program.write_text(PROGRAM)
        options = ["--master", master, "--py-files", str(self._code)]
        for side in ("driver", "executor"):
            options += ["--conf", f"spark.{side}.memory=512m"]
            options += ["--conf", f"spark.{side}.extraJavaOptions={QUICK_START}"]
        command = [str(SPARK_HOME / "bin" / "spark-submit"), *options, str(program)]
        command += ["replay", str(self._log), "--out", str(self.out.root)]
        command += ["--config", str(self._config), "--batch", str(batch)]
        environment = {**cluster_environment(), "PYSPARK_PYTHON": sys.executable}
        log_path = place / "driver.log"
        driver = ChildProcess.start(where, command, log_path=log_path, cwd=place, env=environment)
        self.drivers.append(driver)
        return driver

    def finish(self, driver: ChildProcess) -> str:
        """Wait for the end of a driver; return the digest of what was decided."""
        assert driver.wait(WAIT_S), log_tail(driver.log_path)
        assert driver.return_code == 0, log_tail(driver.log_path)
        return digest_of(self.out.decisions).hexdigest()

    def close(self) -> None:
        """End the drivers that still run."""
        for driver in self.drivers:
            if driver.running:
                driver.kill()

    def decided(self) -> int:
        """How many decisions are in the log of the replay."""
        try:
            with EmbeddedLogReader(self.out.decisions) as reader:
                return reader.end_offset()
        except LogError:
            return 0


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


@pytest.fixture(scope="module")
def wanted(log: list[Event]) -> str:
    """The digest of a fold in one process, in one batch, over other slots."""
    digest = Digest()
    digest.update(fold_log(log, slots=16)[1])
    return digest.hexdigest()


@pytest.fixture
def submitter(tmp_path: Path, log: list[Event]) -> Iterator[Submitter]:
    found = Submitter(tmp_path, log)
    yield found
    found.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with standalone(tmp_path / "spark", workers=2) as url:
        yield url


def executors_that_ran_tasks(spark: Path) -> set[str]:
    """The workers whose executors logged a task."""
    logs = [path for path in spark.glob("worker-*/app-*/*/stderr") if "Running task" in _read(path)]
    return {path.parts[len(spark.parts)] for path in logs}


def _read(path: Path) -> str:
    return path.read_text(errors="replace")


def test_a_driver_that_was_killed_on_a_cluster_is_gone_on_from_elsewhere(
    master: str, submitter: Submitter, tmp_path: Path, wanted: str
) -> None:
    first = submitter.submit(master, "here", batch=2)
    deadline = time.monotonic() + WAIT_S
    while not submitter.decided():
        first.check_running()
        assert time.monotonic() < deadline, log_tail(first.log_path)
        time.sleep(0.05)
    first.kill()
    decided = submitter.decided()
    assert digest_of(submitter.out.decisions).hexdigest() != wanted
    assert submitter.finish(submitter.submit(master, "elsewhere", batch=40)) == wanted
    assert submitter.decided() > decided
    assert executors_that_ran_tasks(tmp_path / "spark") == {"worker-0", "worker-1"}
    assert list((tmp_path / "spark").glob("worker-*/app-*/*/helmstream.zip"))


def test_a_local_cluster_decides_the_same(tmp_path: Path, log: list[Event], wanted: str) -> None:
    submitter = Submitter(tmp_path, log)
    driver = submitter.submit("local-cluster[2,1,1024]", "here", batch=40)
    assert submitter.finish(driver) == wanted
