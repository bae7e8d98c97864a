"""A job without Spark: the real sinks on a recorded log, with a checkpoint of its own.

It keeps what Spark keeps, in the same order: the range of a batch before it runs (offsets/N), the
machines' states after it (commits/N). Between any two steps it can be killed: `Points` counts them
and stops the process, or only this job, at a chosen one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from checkpoints.read import folded_until
from state.events import Event
from streaming.image.restore import image_of, timers_of, unfinished_deletions
from streaming.job import unfolded_events
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.sinks.assembly import Sinks, open_sinks
from streaming.sinks.batch import opened
from streaming.zk.fenced import FencedWriter
from streaming.zk.znodes.controller import (
    PRODUCER_ID_BLOCK_PATH,
    ProducerIdBlock,
    producer_id_block_bytes,
)
from tests.fixtures.story import LISTENER, Fold
from tests.integration.sinks.support import wait_for, write_state

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


class LocalJob:
    """One life of a job on a data folder. meddled: others write to ZooKeeper before one batch."""

    def __init__(
        self, data_dir: Path, connect: str, points: Points, *, meddled: bool = True
    ) -> None:
        self.points = points
        self.meddled = meddled
        self.closed = False
        self.folders = DataDir(data_dir)
        self.checkpoint = self.folders.checkpoint
        for name in ("offsets", "commits"):
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        committed = sorted(int(path.name) for path in (self.checkpoint / "commits").iterdir())
        self.batch_id = committed[-1] + 1 if committed else 0
        states = (
            orjson.loads((self.checkpoint / "commits" / str(committed[-1])).read_bytes())
            if (committed)
            else {}
        )
        self.fold = Fold(2, {int(key): bytes.fromhex(data) for key, data in states.items()})
        self.folded = folded_until(self.checkpoint)
        self.sinks = self._open(connect)

    def _open(self, connect: str) -> Sinks:
        chosen = {
            "data.dir": self.folders.root,
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": 10_000,
            "control.plane.listener.name": LISTENER,
            "retry.backoff.ms": 5,
        }
        settings = load_settings((), [f"{key}={value}" for key, value in chosen.items()], {})
        machines = self.fold.machines()
        return open_sinks(
            settings,
            self.folders,
            image_of(machines),
            timers_of(machines),
            unfolded=unfolded_events(self.folders.events, self.folded),
            stopped=threading.Event(),
        )

    def start(self) -> None:
        """As `run_job` does before the query."""
        self.sinks.link.start()
        assert self.sinks.link.wait_connected(20)
        self._watch()
        deletions = unfinished_deletions(self.fold.machines())
        self.sinks.pipeline.resend(self.folded, opened(deletions))

    def _watch(self) -> None:
        pipeline, around = self.sinks.pipeline, self.points.around
        pipeline._log = around("decision log", pipeline._log)
        pipeline._zookeeper.write = around("zookeeper", pipeline._zookeeper.write)
        pipeline._pending.mark = around("mark", pipeline._pending.mark)
        pipeline._brokers.deliver = around("deliver", pipeline._brokers.deliver)
        pipeline._appender.append_of_batch = around("append", pipeline._appender.append_of_batch)
        pipeline._say = around("say", pipeline._say)

    def run(self) -> None:
        """Fold everything that is in the log, and what comes of it."""
        with self._watched_writes():
            while (end := self._range()) is not None:
                with EmbeddedLogReader(self.folders.events) as reader:
                    events = [
                        Event(one.offset, one.time_ms, one.kind, one.key, one.payload)
                        for one in reader.read(self.folded, end)
                    ]
                self.sinks.pipeline.process(self.batch_id, self.fold.batch(events))
                self._commit(end)

    @contextmanager
    def _watched_writes(self) -> Iterator[None]:
        real = FencedWriter.write
        points = self.points

        def write(writer: FencedWriter, ops: Any) -> Any:
            found = real(writer, ops)
            points.pass_by("between writes")
            return found

        FencedWriter.write = write
        try:
            yield
        finally:
            FencedWriter.write = real

    def _range(self) -> int | None:
        """Return where the next batch ends; a range that was planned before the crash stays."""
        planned = self.checkpoint / "offsets" / str(self.batch_id)
        if not planned.exists():
            with EmbeddedLogReader(self.folders.events) as reader:
                end = min(reader.end_offset(), self.folded + BATCH_EVENTS)
            if end == self.folded:
                return None
            if self.meddled and self.batch_id == MEDDLED_BATCH:
                self._meddle()
            _write(planned, b'v1\n{}\n{"offset":%d}' % end)
            self.points.pass_by("planned")
        return int(orjson.loads(planned.read_bytes().splitlines()[2])["offset"])

    def _meddle(self) -> None:
        """A leader changes its ISR by itself, once, and somebody takes producer ids."""
        session = self.sinks.zookeeper._session
        if session.get(PRODUCER_ID_BLOCK_PATH) is None:
            write_state(session, "t", 1, (2, 1, [2, 3, 1]))
            block = ProducerIdBlock(9, 5000, 5999)
            session.create(PRODUCER_ID_BLOCK_PATH, producer_id_block_bytes(block))

    def _commit(self, end: int) -> None:
        states = {str(key): data.hex() for key, data in self.fold.states.items()}
        self.points.pass_by("before commit")
        _write(self.checkpoint / "commits" / str(self.batch_id), orjson.dumps(states))
        self.batch_id += 1
        self.folded = end
        self.points.pass_by("after commit")

    def wait_told(self) -> None:
        """Wait until every broker has answered everything and that is noted.

        One that left before it answered stays marked: it will be told everything if it returns.
        """
        registered = set(image_of(self.fold.machines()).brokers)
        wait_for("empty queues", lambda: not any(self.sinks.brokers.queue_lengths().values()))

        def all_confirmed() -> bool:
            marked = orjson.loads(self.folders.pending.read_bytes())["pending"]
            return registered.isdisjoint(map(int, marked))

        wait_for("confirmations", all_confirmed)

    def die(self) -> None:
        """End as a killed process does: nothing that is on its way is finished."""
        self.sinks.pipeline._pending.clear = lambda *_: None
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.sinks.close()


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def main() -> None:
    """Run a job that kills its own process: data folder, connect string, number of the point."""
    data_dir, connect, at = sys.argv[1:]
    job = LocalJob(Path(data_dir), connect, Points(int(at), for_real=True))
    job.start()
    job.run()


if __name__ == "__main__":
    main()
