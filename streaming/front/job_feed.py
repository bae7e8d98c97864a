"""What the job tells the front, and where it goes: image, timers, replies, progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson

from state.decisions import DecisionKind
from streaming.front.clock import Clock
from streaming.front.job_progress import JobProgress
from streaming.front.pending_requests import PendingRequests
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import (
    BatchCompleted,
    Delivered,
    ImageTold,
    PersistedDecisions,
    QueryFolded,
    Reobserve,
    Replies,
)
from streaming.link.messages import Message, unpack_parts
from streaming.link.pause import Pause, pause_after
from streaming.process.counters import Counters

logger = logging.getLogger(__name__)

_PART_BYTES = 256 * 1024
"""Of decisions about groups that are taken in one turn of the loop; 10 ms, about."""


class JobListener(Protocol):
    """Who is told what a job does, on the event loop, in order."""

    def job_connected(self) -> None:
        """A job is there; what it has folded follows."""

    def job_gone(self) -> None:
        """The job's connection broke."""

    def snapshot(self, image: ClusterImage | None, told: ImageTold, pause: Pause | None) -> None:
        """A job that came has folded what is before an offset, which may have changed the image.

        pause: the one there is, which the job need not know of.
        """

    def decided(self, image: ClusterImage | None, gone: Collection[str]) -> None:
        """What was decided may have changed the image; gone: topics that ceased to exist by it."""

    def log_ends_asked(self, block: bytes | memoryview) -> None:
        """Partitions cannot elect before it is known where logs end: an ask_log_ends decision."""

    def groups_decided(self, decisions: Sequence[tuple[int, bytes]]) -> None:
        """Decisions about groups, some at a time: (event offset, body)."""

    def batch_completed(self, batch: BatchCompleted) -> None:
        """A batch is complete."""

    def query_folded(self) -> None:
        """The query has folded events that were carried out in the job's head start."""

    def reobserve(self, topics: Sequence[str], unwritable: Sequence[str]) -> None:
        """The job took topics back that ZooKeeper has otherwise; unwritable: those of them that
        ZooKeeper takes no write of.
        """


class JobFeed:
    """Takes the job's messages on the event loop, in order (a JobHandler)."""

    def __init__(
        self,
        progress: JobProgress,
        clock: Clock,
        pending: PendingRequests,
        counters: Counters,
        now_ms: Callable[[], int],
        *,
        pauses_on: Callable[[bool], bool],
        listener: JobListener,
    ) -> None:
        """Start without an image: it comes with a job that has one, or with what a job decides.

        pauses_on: whether a pause goes on for a job that knows of no order, by whether there was
        one before it came.
        """
        self.image: ClusterImage | None = None
        self._progress = progress
        self._clock = clock
        self._pending = pending
        self._counters = counters
        self._now_ms = now_ms
        self._pauses_on = pauses_on
        self._listener = listener
        self._takers: dict[str, Callable[[Message], None]] = {
            ImageTold.kind: self._take_image,
            Replies.kind: self._take_replies,
            BatchCompleted.kind: self._take_batch,
            QueryFolded.kind: lambda _: self._listener.query_folded(),
            Delivered.kind: lambda message: self._take_delivery(Delivered.read(message.head)),
            Reobserve.kind: self._take_reobserve,
        }

    def job_connected(self, pid: int) -> None:
        """Take a new job; its image follows."""
        logger.info("job %d is connected", pid)
        self._progress.pid = pid
        self._listener.job_connected()

    def job_gone(self) -> None:
        """Keep the image: it stays true while nothing is decided."""
        logger.info("job %s is gone", self._progress.pid)
        self._progress.pid = None
        self._progress.queue_lengths = {}
        self._listener.job_gone()

    def job_said(self, message: Message) -> Iterator[None]:
        """Take one message, in parts; one of a type that is not known is logged and passed over."""
        taker = self._takers.get(message.type)
        if message.type == PersistedDecisions.kind:
            yield from self._take_decisions(message)
        elif taker is not None:
            taker(message)
        else:
            logger.warning("the job sent a message of unknown type %r", message.type)

    def _take_image(self, message: Message) -> None:
        if message.body:
            self.image = ClusterImage.from_snapshot(message.body)
        told = ImageTold.read(message.head)
        progress = self._progress
        # A pause is the operator's to end: a job that knows nothing does not know of it either.
        goes_on = told.without_term and self._pauses_on(progress.is_paused())
        progress.pause = self._known_pause(told) if told.paused or goes_on else None
        progress.completed = told.end_offset
        self._clock.replace(told.timers)
        self._take_delivery(told)
        if told.query_folds:
            self._listener.query_folded()
        self._listener.snapshot(self.image, told, progress.pause)

    def _known_pause(self, told: ImageTold) -> Pause:
        """Return what is known of a pause, by a job that came or by us."""
        before = self._progress.pause
        pause = Pause(told.pause_reason, told.paused_since_ms).filled(before)
        if before is None:
            logger.info("the controller is paused by an operator, reason: %r", pause.reason)
        return pause

    def _take_pause(self, order: Mapping[str, Any]) -> None:
        said = "the controller is paused" if order["paused"] else "the pause is ended"
        logger.info("%s by an operator, reason: %r", said, order["reason"])
        self._progress.pause = pause_after(self._progress.pause, order, self._now_ms())

    def _take_decisions(self, message: Message) -> Iterator[None]:
        decisions = PersistedDecisions.read(message.head).decisions
        bodies = unpack_parts(message.body, [size for _, _, size in decisions])
        groups: list[tuple[int, bytes]] = []
        gone: list[str] = []
        for (offset, kind, _), body in zip(decisions, bodies, strict=True):
            if kind == DecisionKind.CHANGE_GROUP:
                groups.append((offset, bytes(body)))
            elif kind == DecisionKind.ARM_TIMER:
                timer = orjson.loads(body)
                self._clock.arm(
                    timer["timer"], timer["deadline_ms"], slack_ms=timer.get("slack_ms", 0)
                )
            elif kind == DecisionKind.SET_PAUSE:
                self._take_pause(orjson.loads(body))
            elif kind == DecisionKind.SET_ASIDE:
                self._counters["set_aside_events"] += 1
            elif kind == DecisionKind.ASK_LOG_ENDS:
                self._listener.log_ends_asked(body)
            elif self.image is not None:
                for part in self.image.apply_in_parts(kind, body):
                    gone.extend(part)
                    yield
            elif kind == DecisionKind.UPDATE_BROKERS and orjson.loads(body)["complete"]:
                self.image = ClusterImage()
                self.image.apply(kind, body)
        self._listener.decided(self.image, gone)
        for some in _parts(groups):
            self._listener.groups_decided(some)
            yield

    def _take_replies(self, message: Message) -> None:
        self._pending.answer(Replies.read(message.head).replies)

    def _take_batch(self, message: Message) -> None:
        batch = BatchCompleted.read(message.head)
        self._progress.note_batch(batch, self._now_ms())
        if batch.rejected:
            self._counters["rejected_writes"] += batch.rejected
        self._listener.batch_completed(batch)

    def _take_delivery(self, told: Delivered | ImageTold) -> None:
        self._progress.delivery.update(told.brokers)
        self._progress.note_queue_lengths(told.queue_lengths)

    def _take_reobserve(self, message: Message) -> None:
        told = Reobserve.read(message.head)
        self._listener.reobserve(told.topics, told.unwritable)


def _parts(decisions: Sequence[tuple[int, bytes]]) -> Iterator[Sequence[tuple[int, bytes]]]:
    """Yield decisions in order, so many at a time that others are served meanwhile."""
    start = size = 0
    for end, (_, body) in enumerate(decisions, start=1):
        size += len(body)
        if size >= _PART_BYTES or end == len(decisions):
            yield decisions[start:end]
            start, size = end, 0
