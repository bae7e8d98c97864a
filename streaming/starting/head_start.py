"""A head start: events are folded in the job's process while the query is not ready, or slower.

Starting Spark takes ten seconds, a query's first batch one or two; the machines need neither. Until
the query has caught up, this folds what comes, by the same functions and with the same decisions,
and the same sinks carry it out. The query folds all of it again, out of its checkpoint: what it
decides on those events is compared and dropped, and what it decides after them counts.

`checkpoints.ahead` notes how far this is, so that a crash costs what it costs between batches of
Spark: the last batch is carried out again, with the same cut. docs/adr/0018 says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from checkpoints.ahead import Ahead, forget_ahead, note_ahead
from checkpoints.kept_machines import KeptMachines
from state.events import Event
from streaming.decided_rows import FoldedBatch, load_goes_on
from streaming.folding import folded_events
from streaming.log.api import LogUnavailable
from streaming.log.event_rows import events_in
from streaming.log.recorded import open_if_made
from streaming.log.source import HelmstreamLogStreamReader
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.sinks.appender import JobStopping
from streaming.sinks.pipeline import Pipeline
from streaming.starting.beginning import Beginning
from streaming.starting.catch_up import CatchUp
from streaming.starting.current_load import CurrentLoad
from streaming.starting.fold_check import FoldCheck

logger = logging.getLogger(__name__)

_LOG_POLL_S = 0.05
_LOAD_POLL_S = 0.01
_END_TIMEOUT_S = 60.0
_LONG_S = 60.0
"""After which an operator is told, again and again, that the query is not ready."""
_STILL_S = 2.0
"""Of a load of which nothing comes: the query does not wait for it any longer."""


class _Phase(IntEnum):
    """How far the query has taken over."""

    AHEAD = 0  # events are folded here
    OVER = 1  # the query decides what comes now
    COMPARED = 2  # it has folded all that was folded here
    FORGOTTEN = 3  # and the note of it is gone


class HeadStart:
    """Folds and carries out until the query has caught up, then lets it go on."""

    def __init__(
        self,
        settings: Settings,
        folders: DataDir,
        pipeline: Pipeline,
        beginning: Beginning,
        stopped: threading.Event,
        *,
        running: bool = False,
    ) -> None:
        """Take where to begin; nothing happens before `start`.

        running: in a job whose query runs, at the beginning of a load.
        """
        self._settings = settings
        self._folders = folders
        self._pipeline = pipeline
        self._stopped = stopped
        self._machines = KeptMachines(beginning.states)
        self._began = self._done = beginning.offset
        self._first_end = beginning.first_end
        self._catch_up = CatchUp(beginning.committed)
        self._first = beginning.committed if beginning.fresh else None
        self._running = running
        self._load = CurrentLoad(goes_on=beginning.loading)
        self._warn_at_s = time.monotonic() + _LONG_S
        self._fold_check = FoldCheck()
        self._phase = _Phase.AHEAD
        self._failure: Exception | None = None
        self._turn = threading.Lock()  # of those who use the pipeline: this thread, Spark's
        self._thread = threading.Thread(target=self._run, name="head-start", daemon=True)

    def start(self) -> None:
        """Begin to fold."""
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the head start, if it failed."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stop, and wait until nothing is carried out any more."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_END_TIMEOUT_S)

    @property
    def passed(self) -> bool:
        """Whether the query has folded all that was folded here, and decides."""
        return self._phase >= _Phase.COMPARED

    @property
    def _is_over(self) -> bool:
        return self._phase >= _Phase.OVER

    def process_batch(self, batch_id: int, folded: FoldedBatch) -> None:
        """Carry out what is left to be of a micro-batch of the query."""
        self._await_first_batch()
        with self._turn:
            self.check()
            if self.passed:
                self._forget()
                self._pipeline.carry_out(batch_id, folded)
            else:
                self._take_over(batch_id, folded)

    def await_load(self) -> None:
        """Wait while a load of the cluster is folded and brokers are told of it: beside the query's
        fold both would take twice as long.
        """
        if not self._load.goes_on:
            return
        before, still_since_s = (True, self._done), time.monotonic()
        while not (self._is_over or self._failure is not None or self._stopped.wait(_LOAD_POLL_S)):
            now = self._of_load(before)
            if now == (False, 0):
                return
            if now != before:
                before, still_since_s = now, time.monotonic()
            elif time.monotonic() > still_since_s + _STILL_S:
                return

    def _of_load(self, before: tuple[bool, int]) -> tuple[bool, int]:
        """Return whether more of it is to come, and what shows how far it is: the events that are
        done; behind its end the fewest requests that brokers had not answered, since then.
        """
        if self._load.goes_on:
            return True, self._done
        unanswered = self._pipeline.unanswered()
        return False, unanswered if before[0] else min(before[1], unanswered)

    def _await_first_batch(self) -> None:
        """Wait until the batch of before a crash has run again, as it was. Raises JobStopping."""
        while self._first_end is not None and self._failure is None:
            if self._stopped.wait(_LOG_POLL_S):
                raise JobStopping("the batch that was begun before is to run again first")

    def _take_over(self, batch_id: int, folded: FoldedBatch) -> None:
        if self._catch_up.query_folded(
            folded.end_offset, self._done, load_goes_on=self._load.goes_on
        ):
            self._end("the query has caught up")
        self._fold_check.query(folded.decisions, self._began, self._done)
        if self._is_over and folded.end_offset >= self._done:
            self._compare()
        if folded.end_offset <= self._done:
            self._pipeline.pass_over(folded.end_offset)
            return
        self._note(folded.end_offset)
        self._pipeline.carry_out(batch_id, _from(folded, self._done))

    def _end(self, why: str) -> None:
        """Let the query decide what comes from now on."""
        if not self._is_over:
            self._phase = _Phase.OVER
            self._machines.clear()
            logger.info(
                "%s: %d events from %d on were decided before it was ready",
                why,
                self._done - self._began,
                self._began,
            )

    def _compare(self) -> None:
        """Say so if the query has decided otherwise. It goes on from its own states all the same,
        as after a restart.
        """
        self._phase = _Phase.COMPARED
        if self._fold_check.differs():
            logger.error(
                "the query decided otherwise on the events %d to %d than what was carried out"
                " before it was ready (%d and %d decisions): please report this",
                self._began,
                self._done,
                self._fold_check.decided_by_query,
                self._fold_check.decided_ahead,
            )

    def _run(self) -> None:
        try:
            reader = self._reader()
            while reader is not None and not (self._is_over or self._stopped.is_set()):
                self._step(reader)
                self._warn()
            if reader is not None:
                reader.close()
        except JobStopping as error:
            self._failure = error
        except Exception as error:
            logger.exception("nothing is decided until the job is started again")
            self._failure = error  # the job's thread raises it

    def _warn(self) -> None:
        behind = self._catch_up.behind(self._done)
        if time.monotonic() < self._warn_at_s or behind == 0:
            return
        self._warn_at_s = time.monotonic() + _LONG_S
        logger.warning(
            "the query is not ready yet: %d events are decided in the job's own process, and will"
            " be folded again",
            behind,
        )

    def _reader(self) -> HelmstreamLogStreamReader | None:
        """Return a reader once there is a log, which the front makes; None when the job is to end
        before.
        """
        where = self._folders.event_log
        while isinstance(where, Path) and not _is_made(where):  # a topic is there before a job is
            if self._stopped.wait(_LOG_POLL_S):
                return None
        batch_events = self._settings.event_log_batch_max_events
        reader = HelmstreamLogStreamReader(
            str(where), self._settings.layout, batch_events, self._done
        )
        with self._ended_if_away():
            reader.open()
        return None if self._is_over else reader

    def _step(self, reader: HelmstreamLogStreamReader) -> None:
        events: list[Event] = []
        with self._ended_if_away():
            events = self._next(reader)
        if events:
            self._carry_out(events)

    @contextmanager
    def _ended_if_away(self) -> Iterator[None]:
        """Let a log cluster that is away end a head start whose query runs: that decides then.

        Raises LogUnavailable when it does not run yet.
        """
        try:
            yield
        except LogUnavailable as error:
            if not self._running:
                raise
            logger.warning("the query folds the load itself: %s", error)
            with self._turn:
                self._end("the event log is away")

    def _next(self, reader: HelmstreamLogStreamReader) -> list[Event]:
        """Return the next batch of events, none when nothing comes for a moment."""
        start = {"offset": self._done}
        if self._first_end is not None:
            batches = reader.readBetweenOffsets(start, {"offset": self._first_end})
        else:
            batches, _ = reader.read(start)
        return events_in(one for batch in batches for one in batch.column("events").to_pylist())

    def _carry_out(self, events: list[Event]) -> None:
        with self._turn:
            if self._is_over:
                return
            decisions = self._machines.fold_batch(events, self._settings.layout)
            folded = folded_events(decisions, events)
            self._fold_check.ahead(folded.decisions)
            self._note(folded.end_offset)
            self._pipeline.carry_out(None, folded)
            self._first_end, self._done = None, folded.end_offset
            self._load.note(goes_on=load_goes_on(events, self._load.is_open))

    def _forget(self) -> None:
        """Drop the note: Spark begins a batch when the one before is committed."""
        if self._phase is not _Phase.FORGOTTEN:
            self._phase = _Phase.FORGOTTEN
            forget_ahead(self._folders.checkpoint)

    def _note(self, planned: int) -> None:
        note_ahead(self._folders.checkpoint, Ahead(self._first, self._done, planned))


def _is_made(where: Path) -> bool:
    opened = open_if_made(where)
    if opened is not None:
        opened.close()
    return opened is not None


def _from(folded: FoldedBatch, offset: int) -> FoldedBatch:
    """Return what a batch says of the events from an offset on."""
    decisions = [one for one in folded.decisions if one.offset >= offset]
    times = {event: time_ms for event, time_ms in folded.time_ms.items() if event >= offset}
    rung = {timer: event for timer, event in folded.rung.items() if event >= offset}
    return FoldedBatch(decisions, times, folded.end_offset, folded.loading, rung)
