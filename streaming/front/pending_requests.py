"""Requests that became events and wait for the decisions that answer them."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeAlias

from state.event_kinds import EventKind
from streaming.front.event_loop import call_from_thread
from streaming.gateway.ports import DecisionTimedOut, NotController, Paused, ReplyBody
from streaming.link.pause import Pause
from streaming.log.api import NewRecord, RecordRefused
from streaming.log.events import AppendEvents, event
from streaming.process.counters import Counters

PAUSED_KINDS = frozenset(
    {
        EventKind.ALTER_PARTITION_REQUESTED,
        EventKind.ALTER_REASSIGNMENTS_REQUESTED,
        EventKind.CONTROLLED_SHUTDOWN_REQUESTED,
        EventKind.CREATE_PARTITIONS_REQUESTED,
        EventKind.CREATE_TOPIC_REQUESTED,
        EventKind.DELETE_TOPIC_REQUESTED,
        EventKind.ELECT_LEADERS_REQUESTED,
    }
)
"""Requests that are about partitions: during a pause they are not even appended."""
_REASON_CHARS = 1_000
"""Of an operator's reason that clients are told: their protocol has room for 32 KiB."""

PendingReply: TypeAlias = asyncio.Future[ReplyBody]
_Queued: TypeAlias = tuple[NewRecord, PendingReply]


class PendingRequests:
    """Requests that wait for their decision, by request id; lives on one event loop.

    The gateway's DecisionClient.
    """

    def __init__(
        self,
        append: AppendEvents,
        is_controller: Callable[[], bool],
        counters: Counters,
        present_pause: Callable[[], Pause | None] = lambda: None,
    ) -> None:
        """Append with `append`, and only while `is_controller`; during a `present_pause` nothing of
        what it is about.
        """
        self._append = append
        self._is_controller = is_controller
        self._counters = counters
        self._present_pause = present_pause
        self._id = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._waiting: dict[str, PendingReply] = {}
        self._queued: list[_Queued] = []

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    async def submit(
        self, kind: EventKind, key: str, payload: dict[str, Any], timeout_s: float
    ) -> ReplyBody:
        """Append an event that carries a new request_id and return the body of its reply.

        Raises NotController, Paused, DecisionTimedOut, RecordRefused.
        """
        return await self.ask(kind, key, payload, timeout_s)

    def ask(
        self, kind: EventKind, key: str, payload: dict[str, Any], timeout_s: float
    ) -> PendingReply:
        """Append an event as `submit` does and return what its reply will be, or what it raises.

        Raises NotController, Paused.
        """
        if not self._is_controller():
            raise NotController("this node is not the controller now")
        if kind in PAUSED_KINDS and (pause := self._present_pause()) is not None:
            raise Paused(_why_refused(pause))
        request_id, reply = self.expect(kind, timeout_s)
        self._queue(event(kind, {**payload, "request_id": request_id}, key), reply)
        return reply

    def expect(self, kind: EventKind, timeout_s: float) -> tuple[str, PendingReply]:
        """Return a new request_id and what its reply will be; nothing is appended."""
        loop = asyncio.get_running_loop()
        request_id = f"{self._id}-{next(self._numbers)}"
        reply: PendingReply = loop.create_future()
        self._waiting[request_id] = reply
        late = loop.call_later(timeout_s, self._late, reply, kind, timeout_s)

        def ended(_: PendingReply) -> None:
            late.cancel()
            del self._waiting[request_id]

        reply.add_done_callback(ended)
        return request_id, reply

    def _queue(self, record: NewRecord, reply: PendingReply) -> None:
        """Append with all that is asked in this turn of the loop; an append that was begun is not
        taken back.
        """
        if not self._queued:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._append_queued, loop)
        self._queued.append((record, reply))

    def _append_queued(self, loop: asyncio.AbstractEventLoop) -> None:
        queued, self._queued = self._queued, []
        self._append_together(loop, queued)

    def _append_together(self, loop: asyncio.AbstractEventLoop, queued: list[_Queued]) -> None:
        def appended(done: Future[range]) -> None:
            if (error := done.exception()) is not None:
                call_from_thread(loop, self._not_appended, loop, queued, error)

        self._append([record for record, _ in queued]).add_done_callback(appended)

    def _not_appended(
        self, loop: asyncio.AbstractEventLoop, queued: list[_Queued], error: BaseException
    ) -> None:
        """Tell who waits; of several, one that is refused does not keep the others out.

        A log that has failed ends this front: who asks goes to whoever has the role next.
        """
        if isinstance(error, RecordRefused) and len(queued) > 1:
            for one in queued:
                self._append_together(loop, [one])
            return
        if not isinstance(error, RecordRefused):
            error = NotController(f"the event log takes nothing: {error}")
        for _, reply in queued:
            if not reply.done():
                reply.set_exception(error)

    def _late(self, reply: PendingReply, kind: str, timeout_s: float) -> None:
        if not reply.done():
            self._counters["reply_timeouts"] += 1
            reply.set_exception(DecisionTimedOut(f"no decision about {kind} in {timeout_s:g} s"))

    def answer(self, replies: Iterable[ReplyBody]) -> None:
        """Hand replies to who waits for them; late ones are counted and dropped."""
        for body in replies:
            reply = self._waiting.get(body["request_id"])
            if reply is None or reply.done():
                self._counters["late_replies"] += 1
            else:
                reply.set_result(body)

    def fail_all(
        self,
        kind: type[Exception] = NotController,
        reason: str = "this node has lost the controller role",
    ) -> None:
        """Tell everybody who waits that no reply will come."""
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(kind(reason))


def _why_refused(pause: Pause) -> str:
    reason = f" ({pause.reason[:_REASON_CHARS]})" if pause.reason else ""
    return (
        f"The controller is paused by an operator{reason} and decides nothing until it is resumed."
    )
