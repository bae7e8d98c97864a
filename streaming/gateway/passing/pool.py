"""Connections to one broker, for requests that are passed on."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass

from streaming.wire.errors import FrameTooLarge, MalformedFrame
from streaming.wire.frames import frame
from streaming.wire.passing import answer_id, request_with_id

_SIZE = struct.Struct(">i")


class BrokerFailed(Exception):
    """A broker could not be asked, or did not answer; the message says who and why.

    asked: whether it may have got the request, so that asking another one could do it twice.
    """

    def __init__(self, reason: str, asked: bool) -> None:
        super().__init__(reason)
        self.asked = asked


Registration = tuple[int, int]
"""Broker id and epoch."""


@dataclass(frozen=True, slots=True)
class Target:
    """A registration of a broker, and where it listens."""

    broker_id: int
    epoch: int
    host: str
    port: int

    @property
    def registration(self) -> Registration:
        """Which registration it is, on whatever listener."""
        return self.broker_id, self.epoch

    def __str__(self) -> str:
        """Name the broker for messages."""
        return f"broker {self.broker_id} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PassingLimits:
    """What passing on may take.

    connections_max: connections to one broker, each with one request in flight; further requests
    wait. answer_max_bytes: a larger answer is dropped with its connection.
    """

    connections_max: int = 4
    connect_timeout_s: float = 2.0
    answer_timeout_s: float = 30.0
    answer_max_bytes: int = 100 * 1024 * 1024


class _Connection:
    """One connection with at most one request in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._last_id = 0

    @property
    def usable(self) -> bool:
        """Whether the broker has not hung up, as it does with connections that idle."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def exchange(self, request: bytes, answer_max_bytes: int) -> bytes:
        """Send a request and return its answer, whose correlation id is ours."""
        self._last_id = self._last_id % (2**31 - 1) + 1
        self._writer.write(frame(request_with_id(request, self._last_id)))
        await self._writer.drain()
        (size_bytes,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
        if not 0 <= size_bytes <= answer_max_bytes:
            raise FrameTooLarge(size_bytes, answer_max_bytes)
        answer = await self._reader.readexactly(size_bytes)
        if answer_id(answer) != self._last_id:
            raise MalformedFrame(f"answer {answer_id(answer)} to request {self._last_id}")
        return answer

    def abort(self) -> None:
        """Close without waiting."""
        self._writer.transport.abort()


class BrokerPool:
    """The connections to one broker; lives on the gateway's event loop."""

    def __init__(self, target: Target, limits: PassingLimits) -> None:
        """Take where to connect to; nothing is opened yet."""
        self._target = target
        self._limits = limits
        self._turn = asyncio.Semaphore(limits.connections_max)
        self._idle: list[_Connection] = []

    async def exchange(self, request: bytes) -> bytes:
        """Return the broker's answer to a request (both without size); raises BrokerFailed.

        The answer's correlation id is not the request's.
        """
        try:
            async with asyncio.timeout(self._limits.answer_timeout_s), self._turn:
                connection = self._take_idle() or await self._open()
                return await self._exchange_on(connection, request)
        except TimeoutError:
            reason = f"{self._target} did not answer within {self._limits.answer_timeout_s:g} s"
            raise BrokerFailed(reason, asked=True) from None

    def close(self) -> None:
        """Close the connections that idle; one in use ends with its request."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    async def _exchange_on(self, connection: _Connection, request: bytes) -> bytes:
        try:
            answer = await connection.exchange(request, self._limits.answer_max_bytes)
        except (OSError, EOFError, FrameTooLarge, MalformedFrame) as error:
            connection.abort()
            raise BrokerFailed(f"{self._target} did not answer: {error!r}", asked=True) from error
        except BaseException:  # cancelled: what comes next on this connection answers nobody
            connection.abort()
            raise
        self._idle.append(connection)
        return answer

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.abort()
        return None

    async def _open(self) -> _Connection:
        try:
            async with asyncio.timeout(self._limits.connect_timeout_s):
                return _Connection(
                    *await asyncio.open_connection(self._target.host, self._target.port)
                )
        except OSError as error:  # TimeoutError is one
            reason = f"{self._target} cannot be reached: {error!r}"
            raise BrokerFailed(reason, asked=False) from error
