"""The loop of `control_loop` with a job that ends in the midst of a batch and begins again, and
with brokers that take their requests late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streaming.image.brokers import RegisteredBroker
from streaming.image.restore import image_of, unfinished_deletions
from streaming.log.api import LogRecord, NewRecord
from streaming.log.decision_writer import IdempotentLogWriter
from streaming.sinks.answer_events import deletion_events
from streaming.sinks.batch_events import FOLLOWING_KINDS
from streaming.sinks.doubts import Doubts, forget_doubted
from streaming.sinks.pipeline import Pipeline
from streaming.sinks.plan import Plan, SharedRequest
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.wire.apis import ApiKey
from tests.property.control_loop import ControlLoop, pipeline

STEPS = (
    "before marks",
    "before delivery",
    "amid delivery",
    "after delivery",
    "before events",
    "after events",
    "before topics are read again",
    "after topics are read again",
    "before the commit",
    "after the commit",
)
"""Where in a batch the job may end. After the commit it does not run the batch again."""


class JobEndedError(Exception):
    """The job is gone."""


class MemoryLog:
    """The decision log in memory."""

    def __init__(self) -> None:
        self._records: list[LogRecord] = []

    def start_offset(self) -> int:
        return 0

    def end_offset(self) -> int:
        return len(self._records)

    def read(self, start: int, end: int) -> Iterator[LogRecord]:
        return iter(self._records[start:end])

    def append(self, records: Sequence[NewRecord]) -> range:
        start = len(self._records)
        for at, one in enumerate(records, start):
            self._records.append(LogRecord(at, one.time_ms or 0, one.kind, one.key, one.payload))
        return range(start, len(self._records))


class KeptMarks(UnconfirmedBrokers):
    """Marks of brokers whose file is `kept`; before_mark is called before any is set."""

    def __init__(self, kept: dict[str, Any], before_mark: Callable[[], None]) -> None:
        super().__init__(Path("/missing"))
        self._load(kept)
        self._known, self.kept = True, kept
        self._before_mark = before_mark

    def mark(self, *mark: Any) -> None:
        self._before_mark()
        super().mark(*mark)

    def _save(self, *, sync: bool) -> None:
        self.kept = self._kept()


class Queued(NamedTuple):
    """Requests of a batch that a broker has still to take."""

    broker: int
    epoch: int
    requests: Sequence[SharedRequest]
    end_offset: int


class RestartingLoop(ControlLoop):
    """A loop whose job begins again with what is kept after it ended.

    ends_at: the step of the next batch at which it ends, "" for none. slow: brokers whose requests
    wait until `deliver_late`.
    """

    def __init__(self, asking: Collection[int]) -> None:
        self.ends_at = ""
        self.slow: set[int] = set()
        self._decided: Any = MemoryLog()
        self._marks = KeptMarks({"pending": {}}, self._before_mark)
        self._queue: list[Queued] = []
        self._to_confirm: dict[int, int] = {}
        super().__init__(asking)

    def is_settled(self) -> bool:
        return super().is_settled() and not self._queue

    def run_batch(self, end: int | None = None) -> None:
        """Run a batch; if the job ends meanwhile, the next one runs it again."""
        end = len(self.log.events) if end is None else end
        before = dict(self.fold.states), self.folded
        try:
            super().run_batch(end)
            self._reach("before the commit")
            before = dict(self.fold.states), self.folded
            self._reach("after the commit")
        except JobEndedError:
            self.fold.states, self.folded = before
            self.go_on_without_job()
            self.restart()
            self.run_batch(end)

    def restart(self) -> None:
        """Begin again from the last batch that was committed."""
        machines, began = self.fold.machines(), self.folded
        self._queue.clear()
        self._answers.clear()
        self._to_confirm.clear()
        self.image = image_of(machines)
        outcomes = self._unfolded_outcomes()
        self.doubts = Doubts(outcomes)
        forget_doubted(self.image, self.doubts, began)
        self._marks = KeptMarks(self._marks.kept, self._before_mark)
        self._pipeline = self._opened()
        self._pipeline.resend(began, unfinished_deletions(machines))

    def go_on_without_job(self) -> None:
        """Let happen what happens while there is no job."""

    def deliver_late(self) -> None:
        """Have all brokers take what waits for them."""
        queue, self._queue = self._queue, []
        for one in queue:
            self._hand_over(one)

    def take_answers(self, count: int | None = None) -> None:
        if count is None:
            self.deliver_late()
        super().take_answers(count)
        if not self._answers:
            for id_, end_offset in self._to_confirm.items():
                self._marks.confirm(id_, end_offset)
            self._to_confirm.clear()
            self._marks.save()

    # what the sinks reach

    def deliver(
        self, registered: Mapping[int, RegisteredBroker], plan: Plan, end_offset: int
    ) -> Sequence[int]:
        self._reach("before delivery")
        for place, (id_, requests) in enumerate(sorted(plan.items())):
            if place == 1:
                self._reach("amid delivery")
            queued = Queued(id_, registered[id_].epoch, requests, end_offset)
            if id_ in self.slow or any(one.broker == id_ for one in self._queue):
                self._queue.append(queued)
            else:
                self._hand_over(queued)
        self._reach("after delivery")
        return ()

    def append(self, events: list[NewRecord]) -> int:
        self._reach("before events")
        start = super().append(events)
        self._reach("after events")
        return start

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        if head["type"] != "reobserve":
            super().send(head, body)
            return
        self._reach("before topics are read again")
        super().send(head, body)
        self._reach("after topics are read again")

    def _reach(self, step: str) -> None:
        if step == self.ends_at:
            self.ends_at = ""
            raise JobEndedError(step)

    def _before_mark(self) -> None:
        self._reach("before marks")

    def _hand_over(self, queued: Queued) -> None:
        """Have a broker take requests; it has confirmed them when the events that its answers bring
        about are in the log.
        """
        broker = self.brokers[queued.broker]
        if not broker.alive or broker.epoch != queued.epoch:
            return
        answers = [self.hand(broker, one) for one in queued.requests]
        of_stops = [one for one in answers if one.request.api is ApiKey.STOP_REPLICA]
        self._answers += [event for one in of_stops for event in deletion_events(one)]
        if self._answers:
            self._to_confirm[queued.broker] = queued.end_offset
        else:
            self._marks.confirm(queued.broker, queued.end_offset)

    def _unfolded_outcomes(self) -> list[LogRecord]:
        return [
            LogRecord(one.offset, one.time_ms, one.kind, one.key, one.payload)
            for one in self.log.events[self.folded :]
            if one.kind in FOLLOWING_KINDS
        ]

    def _opened(self) -> Pipeline:
        return pipeline(
            self,
            self._unfolded_outcomes(),
            decisions=IdempotentLogWriter(self._decided, self._decided),
            decision_log=self._decided,
            unconfirmed=self._marks,
        )
