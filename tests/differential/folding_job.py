"""The job without Spark: the machines and the real sinks in this process, on a real front."""

from __future__ import annotations

import threading
from pathlib import Path

from state.events import Event
from streaming.image.restore import image_of, timers_of
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.sinks.assembly import Sinks, open_sinks
from tests.fixtures.story import Fold

SLOTS = 3
_POLL_S = 0.005


class FoldingJob:
    """Folds what comes into the event log, batch by batch, as the query does."""

    def __init__(self, settings: Settings, slots: int = SLOTS) -> None:
        """Open the sinks and start to fold; the front must have made the event log."""
        self.failure: Exception | None = None
        self._folders = DataDir(Path(settings.data_dir))
        for name in ("offsets", "commits"):
            (self._folders.checkpoint / name).mkdir(parents=True, exist_ok=True)
        self._fold = Fold(slots)
        self._ended = threading.Event()
        self._sinks = self._open(settings)
        self._sinks.link.start()
        self._thread = threading.Thread(target=self._run, name="folding-job", daemon=True)
        self._thread.start()

    def busy(self) -> str | None:
        """Return what brokers still have to be told."""
        if self.failure is not None:
            raise self.failure
        queued = {id_: count for id_, count in self._sinks.brokers.queue_lengths().items() if count}
        return f"requests are queued for brokers: {queued}" if queued else None

    def close(self) -> None:
        """Stop folding and close everything."""
        self._ended.set()
        self._thread.join(30)
        self._sinks.close()

    def _open(self, settings: Settings) -> Sinks:
        machines = self._fold.machines()
        return open_sinks(
            settings,
            self._folders,
            image_of(machines),
            timers_of(machines),
            unfolded=[],
            stopped=threading.Event(),
        )

    def _run(self) -> None:
        try:
            self._fold_all()
        except Exception as error:  # noqa: BLE001  (whoever waits for this job raises it)
            self.failure = error

    def _fold_all(self) -> None:
        folded, batch_id = 0, 0
        with EmbeddedLogReader(self._folders.events) as reader:
            while not self._ended.wait(_POLL_S):
                end = reader.end_offset()
                if end == folded:
                    continue
                events = [
                    Event(one.offset, one.time_ms, one.kind, one.key, one.payload)
                    for one in reader.read(folded, end)
                ]
                self._sinks.pipeline.process(batch_id, self._fold.batch(events))
                folded, batch_id = end, batch_id + 1
