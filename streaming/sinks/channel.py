"""One broker's connection: an ordered queue, one request in flight, sent until answered.

A request is retried for as long as the broker is registered under the epoch it was queued for. The
order of a broker's requests is the order of the queue, whatever fails in between; one broker never
waits for another.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from streaming.security.connector import Connector
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.wire.asked_versions import ServedVersions, asked_versions
from streaming.wire.endpoints import Endpoint
from streaming.wire.errors import WireError
from streaming.wire.exchange import CLIENT_ID, Exchange, still_open
from streaming.wire.healthy_answers import tells_no_error
from streaming.wire.requests import encode_request_header
from streaming.wire.responses import decode_response

logger = logging.getLogger(__name__)

MAX_WAITING = 500
"""How many requests may wait for a broker before they are replaced by everything it has to know."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A request in a broker's queue; end_offset is one past the last event it follows from."""

    request: SharedRequest
    end_offset: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker said to a request."""

    broker_id: int
    broker_epoch: int
    request: SharedRequest
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a broker has to answer, and how long to wait before a request is sent again."""

    socket_timeout_ms: int
    retry_backoff_ms: int


NO_ERRORS: dict[str, Any] = {"error_code": 0, "partition_errors": None, "topics": None}
"""Body of an answer to LeaderAndIsr that names no partition with an error; its lists stay shut."""


class BrokerChannel:
    """Delivers one broker's requests; lives on one asyncio loop.

    on_answer, on_sent and on_confirmed are called on that loop: with each answer, and with the
    offset up to which everything queued has been sent, and then answered.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: int,
        end: Endpoint,
        *,
        connector: Connector,
        timing: Timing,
        on_answer: Callable[[Answer], None],
        on_sent: Callable[[int, int], None],
        on_confirmed: Callable[[int, int], None],
    ) -> None:
        """Take the broker and where it listens; `run` does the work."""
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.end = end
        self._connector = connector
        self._timing = timing
        self._on_answer = on_answer
        self._on_sent = on_sent
        self._on_confirmed = on_confirmed
        self._queue: deque[Queued] = deque()
        self._kept = 0  # how many were left when the queue was replaced last
        self._wake = asyncio.Event()
        self._served = ServedVersions()
        self._connection: Exchange | None = None
        self._failing = False

    def __len__(self) -> int:
        """Return how many requests wait or are in flight."""
        return len(self._queue)

    @property
    def waiting(self) -> tuple[Queued, ...]:
        """What is not answered yet, in order."""
        return tuple(self._queue)

    def put(self, queued: Queued) -> None:
        """Add a request to the end of the queue."""
        self._queue.append(queued)
        self._wake.set()

    @property
    def crowded(self) -> bool:
        """Whether so much waits that it should be replaced: the broker is registered, and does not
        answer.
        """
        return len(self._queue) > MAX_WAITING + self._kept

    def catch_up(self, everything: Iterable[SharedRequest], end_offset: int) -> None:
        """Replace what waits in a crowded queue by requests that tell everything there is.

        What is in flight stays, and what tells of ends, which they do not.
        """
        if not self.crowded:
            return
        in_flight, *behind = (queued.request for queued in self._queue)
        ends = [request for request in behind if request.tells_an_end]
        # What was queued for earlier events is answered when all of this is.
        self._queue = deque(
            Queued(request, end_offset) for request in (in_flight, *ends, *everything)
        )
        self._kept = len(self._queue)

    async def run(self) -> None:
        """Deliver for ever; cancel to stop."""
        try:
            while True:
                while not self._queue:
                    self._wake.clear()
                    await self._wake.wait()
                await self._deliver(self._queue[0].request)
                done = self._queue.popleft()
                if not self._queue or self._queue[0].end_offset > done.end_offset:
                    self._on_confirmed(self.broker_id, done.end_offset)
        finally:
            self._disconnect()

    async def _deliver(self, request: SharedRequest) -> None:
        while True:
            try:
                async with asyncio.timeout(self._timing.socket_timeout_ms / 1000):
                    body = await self._exchange(request)
            except (OSError, TimeoutError, WireError, ValueError) as error:
                self._disconnect()
                self._report(error)
                await asyncio.sleep(self._timing.retry_backoff_ms / 1000)
            else:
                self._failing = False
                self._on_answer(Answer(self.broker_id, self.broker_epoch, request, body))
                return

    def _report(self, error: BaseException) -> None:
        if not self._failing:
            end = self.end
            logger.warning("broker %s at %s:%s: %r", self.broker_id, end.host, end.port, error)
        self._failing = True

    async def _exchange(self, request: SharedRequest) -> dict[str, Any]:
        self._connection = still_open(self._connection)
        if self._connection is None:
            self._connection = await self._connector.open(self.end)
            self._served = await asked_versions(self._connection)
        version = self._served.at_most(request.api, request.max_version)
        head = encode_request_header(request.api, version, 0, CLIENT_ID)
        await self._connection.send(head, *request.encode(version).parts(self.broker_epoch))
        end_offset = self._queue[0].end_offset
        if len(self._queue) == 1 or self._queue[1].end_offset > end_offset:
            self._on_sent(self.broker_id, end_offset)
        return _decoded(request.api, version, await self._connection.answer())

    def _disconnect(self) -> None:
        if self._connection is not None:
            # A broker that reads no more would keep it, and what it was not sent, for good.
            self._connection.abort()
            self._connection = None


def _decoded(api: ApiKey, version: int, answer: bytes) -> dict[str, Any]:
    if api is ApiKey.LEADER_AND_ISR and tells_no_error(version, answer):
        return NO_ERRORS
    return decode_response(api, version, answer)[1]
