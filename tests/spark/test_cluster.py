"""The query on executors of their own decides what a local fold decides, killed drivers included.

Code comes packed, with spark-submit; the checkpoint is on a folder that all can see.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.replay import Digest
from state.events import Event
from streaming.embedded.process import ChildProcess, log_tail
from streaming.log.api import LogError
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.replay.decisions import digest_of
from tests.fixtures.folding import fold_log
from tests.fixtures.spark_cluster import (
    executor_logs,
    kill_driver,
    package,
    standalone,
    submit,
)
from tests.logs.state_logs import long_log
from tests.spark.query_run import recorded

SLOTS, PARTITIONS = 4, 2
WORKERS = ("worker-0", "worker-1")
WAIT_S = 300.0
ROOT = Path(__file__).parents[2]

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
        """Start a driver."""
        words = ["replay", str(self._log), "--out", str(self.out.root)]
        words += ["--config", str(self._config), "--batch", str(batch)]
        code = ["--py-files", str(self._code)]
        python = {"PYSPARK_PYTHON": sys.executable}
        self.drivers.append(submit(self.folder / where, master, code, words, python))
        return self.drivers[-1]

    def finish(self, driver: ChildProcess) -> str:
        """Wait for the end of a driver; return the digest of what was decided."""
        assert driver.wait(WAIT_S), log_tail(driver.log_path)
        assert driver.return_code == 0, log_tail(driver.log_path)
        return digest_of(self.out.decisions).hexdigest()

    def close(self) -> None:
        """End the drivers that still run."""
        for driver in self.drivers:
            kill_driver(driver)

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


def test_a_driver_that_was_killed_on_a_cluster_is_gone_on_from_elsewhere(
    master: str, submitter: Submitter, tmp_path: Path, wanted: str
) -> None:
    first = submitter.submit(master, "here", batch=2)
    deadline = time.monotonic() + WAIT_S
    while not submitter.decided():
        first.check_running()
        assert time.monotonic() < deadline, log_tail(first.log_path)
        time.sleep(0.05)
    kill_driver(first)
    decided = submitter.decided()
    assert digest_of(submitter.out.decisions).hexdigest() != wanted
    assert submitter.finish(submitter.submit(master, "elsewhere", batch=40)) == wanted
    assert submitter.decided() > decided
    logs = executor_logs(tmp_path / "spark")
    assert {worker for worker, log in logs.items() if "Running task" in log} == set(WORKERS)
    assert list((tmp_path / "spark").glob("worker-*/app-*/*/helmstream.zip"))


def test_a_local_cluster_decides_the_same(tmp_path: Path, log: list[Event], wanted: str) -> None:
    submitter = Submitter(tmp_path, log)
    driver = submitter.submit("local-cluster[2,1,1024]", "here", batch=40)
    assert submitter.finish(driver) == wanted
