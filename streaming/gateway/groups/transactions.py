"""Commits in transactions: checked with the transaction's coordinator, and in order with markers.

A marker ends what stands before it in the partition. A commit that came behind it would wait for
one that never comes, and every reader of stable offsets with it (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from state.protocol_errors import ProtocolError
from streaming.gateway.ports import COMMIT_TIMEOUT_S, ReplyBody

Submit = Callable[[int], Awaitable[ReplyBody]]
"""Has a commit decided, given what the transaction's coordinator said of it (an error code)."""

_MARKER_WAITS_S = 20.0


@dataclass(frozen=True, slots=True)
class Producing:
    """Who commits, and where: partition of `__consumer_offsets`; version: of TxnOffsetCommit."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: int
    version: int


Verify = Callable[[Producing], Awaitable[int]]
"""Returns the error code with which a producer may not commit now, 0 if it may."""


class Transactions:
    """The commits of each producer that are under way; lives on the gateway's event loop."""

    def __init__(self, verify: Verify) -> None:
        """Take who asks the coordinators of transactions."""
        self._verify = verify
        self._under_way: defaultdict[int, set[asyncio.Task[ReplyBody]]] = defaultdict(set)

    async def commit(self, producing: Producing, submit: Submit) -> ReplyBody:
        """Return the reply to a commit, REQUEST_TIMED_OUT when it takes too long; it stays under
        way then.
        """
        task = asyncio.create_task(self._commit(producing, submit))
        of_producer = self._under_way[producing.producer_id]
        of_producer.add(task)
        task.add_done_callback(lambda done: self._ended(producing.producer_id, done))
        await asyncio.wait([task], timeout=COMMIT_TIMEOUT_S)
        return task.result() if task.done() else {"error": ProtocolError.REQUEST_TIMED_OUT}

    async def _commit(self, producing: Producing, submit: Submit) -> ReplyBody:
        return await submit(await self._verify(producing))

    def _ended(self, producer_id: int, task: asyncio.Task[ReplyBody]) -> None:
        if not task.cancelled():
            task.exception()  # its caller may be gone
        of_producer = self._under_way[producer_id]
        of_producer.discard(task)
        if not of_producer:
            del self._under_way[producer_id]

    async def settled(self, producer_id: int) -> bool:
        """Wait until no commit of a producer is under way; False when that takes too long."""
        under_way = self._under_way.get(producer_id)
        if not under_way:
            return True
        _, rest = await asyncio.wait([*under_way], timeout=_MARKER_WAITS_S)
        return not rest
