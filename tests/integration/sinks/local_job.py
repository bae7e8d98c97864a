"""A job without Spark: the real sinks on a recorded log, with a checkpoint of its own.

It keeps what Spark keeps, in the same order. Between any two steps it can be killed: `Points`
counts them and stops the process, or only this job, at a chosen one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from streaming.image.restore import image_of
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.zk.fenced import FencedWriter
from streaming.zk.znodes.controller import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    producer_id_block_bytes,
)
from tests.fixtures.connected import Connected
from tests.fixtures.folding_job import FoldingJob
from tests.fixtures.job_checkpoints import Checkpoint, HeadStartNotes, SparkLayout
from tests.fixtures.story import LISTENER
from tests.fixtures.waiting import wait_for
from tests.integration.sinks.support import write_state

BATCH_EVENTS = 4
MEDDLED_BATCH = 2


class Killed(BaseException):
    """The job ends here, whatever it was about to do."""


class Points:
    """Counts the points between steps; the one with number `at` ends the job."""

    def __init__(self, at: int | None = None, *, for_real: bool = False) -> None:
        self.names: list[str] = []
        self._at = at
        self._for_real = for_real

    def pass_by(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) - 1 == self._at:
            if self._for_real:
                os.kill(os.getpid(), signal.SIGKILL)
            raise Killed(name)

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self.pass_by(f"before {name}")
            found = call(*arguments, **named)
            self.pass_by(f"after {name}")
            return found

        return watched


class Watched:
    """Passes the points of a checkpoint; disturb is called before a batch is planned."""

    def __init__(
        self, checkpoint: Checkpoint, points: Points, disturb: Callable[[int], None]
    ) -> None:
        self._checkpoint = checkpoint
        self.progress = checkpoint.progress
        self.planned_end = checkpoint.planned_end
        self._points = points
        self._disturb = disturb

    def plan(self, batch_id: int, end: int) -> None:
        self._disturb(batch_id)
        self._checkpoint.plan(batch_id, end)
        self._points.pass_by("planned")

    def commit(self, batch_id: int, end: int, states: Mapping[int, bytes]) -> None:
        self._points.pass_by("before commit")
        self._checkpoint.commit(batch_id, end, states)
        self._points.pass_by("after commit")


class LocalJob(FoldingJob):
    """One life of a job on a data folder.

    meddled: others write to ZooKeeper before one batch. ahead: it is in its head start.
    """

    def __init__(
        self,
        data_dir: Path,
        connect: str,
        points: Points,
        *,
        meddled: bool = True,
        ahead: bool = False,
    ) -> None:
        self.points = points
        self.meddled = meddled
        self.closed = False
        self._patches = pytest.MonkeyPatch()
        chosen = {
            "data.dir": data_dir,
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": 10_000,
            "control.plane.listener.name": LISTENER,
            "retry.backoff.ms": 5,
            "event.log.batch.max.events": BATCH_EVENTS,
            "slots": 2,
        }
        settings = load_settings((), [f"{key}={value}" for key, value in chosen.items()], {})
        layout = SparkLayout(DataDir(data_dir).checkpoint)
        checkpoint = HeadStartNotes(settings) if ahead else layout
        super().__init__(settings, Watched(checkpoint, points, self._meddle))

    def start(self) -> None:
        """As `run_job` does before the query."""
        connected = Connected(self.sinks.link)
        self.sinks.link.start()
        assert connected.wait(20)
        self._watch()
        self.resend()

    def _watch(self) -> None:
        pipeline = self.sinks.pipeline
        for step, target, method in (
            ("decision log", pipeline, "_log"),
            ("zookeeper", pipeline._zookeeper, "write"),
            ("mark", pipeline._unconfirmed, "mark"),
            ("deliver", pipeline._brokers, "deliver"),
            ("append", pipeline._appender, "append_of_batch"),
            ("say", pipeline, "_say"),
        ):
            watched = self.points.around(step, getattr(target, method))
            self._patches.setattr(target, method, watched)

    def run(self) -> None:
        """Fold everything that is in the log, and what comes of it."""
        with self._watched_writes(), EmbeddedLogReader(self.folders.events) as reader:
            while self.fold_batch(reader):
                pass

    @contextmanager
    def _watched_writes(self) -> Iterator[None]:
        real = FencedWriter.write
        points = self.points

        def write(writer: FencedWriter, ops: Any) -> Any:
            found = real(writer, ops)
            points.pass_by("between writes")
            return found

        with patch.object(FencedWriter, "write", write):
            yield

    def _meddle(self, batch_id: int) -> None:
        """A leader changes its ISR by itself, once, and somebody takes producer ids."""
        if not self.meddled or batch_id != MEDDLED_BATCH:
            return
        session = self.sinks.zookeeper._session
        if session.get(PRODUCER_ID_BLOCK_PATH) is None:
            write_state(session, "t", 1, (2, 1, [2, 3, 1]))
            block = ProducerIdBlock(9, 5000, 5999)
            session.create(PRODUCER_ID_BLOCK_PATH, producer_id_block_bytes(block))

    def wait_told(self) -> None:
        """Wait until every broker has answered everything and that is noted.

        One that left before it answered stays marked: it will be told everything if it returns.
        """
        registered = set(image_of(self.fold.machines()).brokers)
        self.wait_answered()
        wait_for("confirmations", lambda: registered.isdisjoint(self.marked()))

    def wait_answered(self) -> None:
        """Wait until every broker has answered everything."""
        wait_for("empty queues", lambda: not any(self.sinks.brokers.queue_lengths().values()))

    def marked(self) -> set[int]:
        """Return the brokers that the next life tells everything."""
        return {*map(int, orjson.loads(self.folders.pending.read_bytes())["pending"])}

    def die(self) -> None:
        """End as a killed process does: nothing that is on its way is finished."""
        for method in ("confirm", "save"):
            self._patches.setattr(self.sinks.pipeline._unconfirmed, method, lambda *_: None)
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            super().close()


def main() -> None:
    """Run a job that kills its own process: data folder, connect string, number of the point."""
    data_dir, connect, at = sys.argv[1:]
    job = LocalJob(Path(data_dir), connect, Points(int(at), for_real=True))
    job.start()
    job.run()


if __name__ == "__main__":
    main()
