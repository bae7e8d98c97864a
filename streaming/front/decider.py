"""Turns a request into an event and waits for the decision that answers it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from state.events import EventKind
from streaming.gateway.ports import DecisionTimedOut, NotController, Paused
from streaming.log.api import NewRecord
from streaming.observers.ports import Counters, event

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
PAUSED_MESSAGE = "The controller is paused by an operator and decides nothing until it is resumed."


class RequestDecider:
    """Requests that wait for their decision, by request id; lives on one event loop.

    The gateway's Decider.
    """

    def __init__(
        self,
        append: Callable[[list[NewRecord]], Future[range]],
        is_controller: Callable[[], bool],
        counters: Counters,
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        """Append with `append`, and only while `is_controller`; while `is_paused` nothing of what
        the pause is about.
        """
        self._append = append
        self._is_controller = is_controller
        self._counters = counters
        self._is_paused = is_paused
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    async def submit(
        self, kind: str, key: str, payload: dict[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        """Append an event that carries a new request_id and return the body of its reply.

        Raises NotController, Paused, DecisionTimedOut, LogError.
        """
        if not self._is_controller():
            raise NotController("this node is not the controller now")
        if kind in PAUSED_KINDS and self._is_paused():
            raise Paused(PAUSED_MESSAGE)
        request_id = uuid.uuid4().hex
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = reply
        try:
            record = event(EventKind(kind), {**payload, "request_id": request_id}, key)
            appended = self._append([record])
            async with asyncio.timeout(timeout_s):
                # Shielded: an append that was begun is not taken back.
                await asyncio.shield(asyncio.wrap_future(appended))
                return await reply
        except TimeoutError:
            self._counters["reply_timeouts"] += 1
            raise DecisionTimedOut(f"no decision about {kind} within {timeout_s:g} s") from None
        finally:
            self._waiting.pop(request_id, None)

    def answer(self, replies: Iterable[dict[str, Any]]) -> None:
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
