"""The job without Spark, as a process; the difference to the real one is what Spark costs."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from streaming.commands.roles import active_settings
from streaming.log.api import LogError
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from tests.differential.folding_job import FoldingJob

_POLL_S = 0.2


def folding_job_command(data_dir: Path, config: Sequence[str]) -> list[str]:
    """Return what starts it in place of `helmstream job`."""
    return [sys.executable, "-m", "tests.bench.groups.folding_job", str(data_dir), *config]


def main(data_dir: str, *config: str) -> None:
    """Run until SIGTERM; config are --set options."""
    logging.basicConfig(level=logging.INFO)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    settings = active_settings(None, [one.removeprefix("--set=") for one in config], Path(data_dir))
    while not _has_log(DataDir(settings.data_dir).events):
        time.sleep(_POLL_S)
    job = FoldingJob(settings, settings.slots)
    try:
        while job.failure is None and not stopped.wait(_POLL_S):
            pass
    finally:
        job.close()
    if job.failure is not None:
        raise job.failure


def _has_log(folder: Path) -> bool:
    try:
        EmbeddedLogReader(folder).close()
    except LogError:
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
