"""A connection on which we are the client: a request goes out in its frame, its answer comes back.

Every request carries an id that its answer repeats (RequestHeader, ResponseHeader); brokers answer
the requests of one connection in order, so an answer with another id belongs to nothing we asked.
"""

from __future__ import annotations

import asyncio
import math
import time

from streaming.wire.errors import MalformedFrame
from streaming.wire.frames import DEFAULT_LIMIT_BYTES, SIZE_BYTES, body_size, frame, size_prefix
from streaming.wire.passing import answer_id, request_with_id

CLIENT_ID = "helmstream"
"""What we call ourselves in the requests that brokers get from us."""

ANSWER_MAX_BYTES = DEFAULT_LIMIT_BYTES
"""The largest answer that is read where no setting says it."""

_ID_MAX = 2**31 - 1
_WRITE_BYTES = 1 << 18


class Exchange:
    """One connection with at most one request in flight.

    After an exception, a cancellation too, close it: what comes next on it answers nobody.
    """

    __slots__ = ("_answer_max_bytes", "_good_until_s", "_last_id", "_reader", "_writer")

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer_max_bytes: int = ANSWER_MAX_BYTES,
    ) -> None:
        """Take an open connection; answer_max_bytes: no larger answer is read."""
        self._reader, self._writer = reader, writer
        self._answer_max_bytes = answer_max_bytes
        self._last_id = 0
        self._good_until_s = math.inf

    def end_after(self, seconds: float) -> None:
        """Take no more requests then: the broker would drop them, and the connection."""
        self._good_until_s = time.monotonic() + seconds

    @property
    def usable(self) -> bool:
        """Whether the broker has not hung up, as it does with connections that idle, and is not
        about to.
        """
        if time.monotonic() >= self._good_until_s:
            return False
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return its answer; raises as `answer` does."""
        await self.send(request)
        return await self.answer()

    async def send(self, head: bytes, *rest: memoryview) -> None:
        """Send a request (without size) under the next id, whatever id is in its head.

        Bit by bit: all brokers get the largest ones at the same time, and each connection keeps a
        copy of what waits in it.
        """
        self._last_id = self._last_id % _ID_MAX + 1
        parts = (memoryview(request_with_id(head, self._last_id)), *rest)
        size_bytes = sum(map(len, parts))
        if size_bytes <= _WRITE_BYTES:
            self._writer.write(frame(b"".join(parts)))
            await self._writer.drain()
            return
        self._writer.write(size_prefix(size_bytes))
        for part in parts:
            for start in range(0, len(part), _WRITE_BYTES):
                self._writer.write(part[start : start + _WRITE_BYTES])
                await self._writer.drain()

    async def answer(self) -> bytes:
        """Return the answer (without size) to what was sent last.

        Raises FrameTooLarge or MalformedFrame before it is read, MalformedFrame for one to another
        request, OSError when the broker hangs up.
        """
        try:
            prefix = await self._reader.readexactly(SIZE_BYTES)
            size_bytes = body_size(prefix, self._answer_max_bytes)
            answer = await self._reader.readexactly(size_bytes)
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("the broker hung up") from error
        if (id_ := answer_id(answer)) != self._last_id:
            raise MalformedFrame(f"answer {id_} to request {self._last_id}")
        return answer

    def abort(self) -> None:
        """Hang up at once, whatever is not out yet."""
        self._writer.transport.abort()


def still_open(connection: Exchange | None) -> Exchange | None:
    """Return a connection that can take a request; one on which the broker has hung up is closed,
    and None returned (connections.max.idle.ms of the broker).
    """
    if connection is None or connection.usable:
        return connection
    connection.abort()
    return None
