"""Connections to one broker, for requests that are passed on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.errors import WireError
from streaming.wire.exchange import ANSWER_MAX_BYTES, CLIENT_ID, Exchange, still_open
from streaming.wire.requests import encode_request

_ASKING_VERSIONS = encode_request(ApiKey.API_VERSIONS, 0, 0, CLIENT_ID, {})


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
    end: Endpoint

    @property
    def registration(self) -> Registration:
        """Which registration it is, on whatever listener."""
        return self.broker_id, self.epoch

    def __str__(self) -> str:
        """Name the broker for messages."""
        return f"broker {self.broker_id} at {self.end.host}:{self.end.port}"


@dataclass(frozen=True, slots=True)
class PassingLimits:
    """What passing on may take.

    connections_max: connections to one broker, each with one request in flight; further requests
    wait. answer_max_bytes: a larger answer is dropped with its connection.
    """

    connections_max: int = 4
    connect_timeout_s: float = 2.0
    answer_timeout_s: float = 30.0
    answer_max_bytes: int = ANSWER_MAX_BYTES


class BrokerPool:
    """The connections to one broker; lives on the gateway's event loop."""

    def __init__(self, target: Target, limits: PassingLimits, connector: Connector) -> None:
        """Take where to connect to; nothing is opened yet."""
        self._target = target
        self._connector = connector
        self._limits = limits
        self._turn = asyncio.Semaphore(limits.connections_max)
        self._idle: list[Exchange] = []

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

    async def _exchange_on(self, connection: Exchange, request: bytes) -> bytes:
        try:
            answer = await connection.ask(request)
        except (OSError, WireError) as error:
            connection.abort()
            raise BrokerFailed(f"{self._target} did not answer: {error!r}", asked=True) from error
        except BaseException:  # cancelled
            connection.abort()
            raise
        self._idle.append(connection)
        return answer

    def _take_idle(self) -> Exchange | None:
        while self._idle:
            if connection := still_open(self._idle.pop()):
                return connection
        return None

    async def _open(self) -> Exchange:
        try:
            async with asyncio.timeout(self._limits.connect_timeout_s):
                return await self._opened()
        except (OSError, WireError) as error:  # TimeoutError is one
            reason = f"{self._target} cannot be reached: {error!r}"
            raise BrokerFailed(reason, asked=False) from error

    async def _opened(self) -> Exchange:
        connection = await self._connector.open(self._target.end, self._limits.answer_max_bytes)
        if self._target.end.security_protocol is SecurityProtocol.SSL:
            try:
                # In TLS 1.3 a broker refuses our certificate after the handshake.
                await connection.ask(_ASKING_VERSIONS)
            except BaseException:
                connection.abort()
                raise
        return connection
