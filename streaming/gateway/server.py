"""The gateway's listeners: accepts connections, within the quota."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from streaming.gateway.answering import Answering
from streaming.gateway.calls import Apis, BoundListener
from streaming.gateway.connection import Connection, Limits
from streaming.preflight import bind_failure
from streaming.wire.endpoints import Endpoint, SecurityProtocol

logger = logging.getLogger(__name__)

_BACKLOG = 4_096
"""Clients of a whole cluster come at once when the node is new; one that finds the queue full tries
again a second later. The operating system may allow less (net.core.somaxconn).
"""
_ACCEPTED_AT_ONCE = 64
"""Then other connections have their turn."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener's name, and where to bind it; port 0 takes a free one.

    advertised_host: what brokers and clients are told instead of host; "" = host.
    """

    name: str
    host: str
    port: int
    advertised_host: str = ""


class Gateway:
    """The Kafka protocol server of this node, on one asyncio event loop.

    counters: connections_open and connections_accepted, connections_refused (over the quota),
    requests_<Api>, unsupported_api_versions, and closed_malformed, closed_too_large,
    closed_unsupported, closed_refused, closed_failed, closed_slow, closed_idle.
    """

    def __init__(self, listeners: Sequence[Listener], apis: Apis, limits: Limits) -> None:
        """Take where to listen, what to serve and what a client may take; `start` binds."""
        self._listeners = listeners
        self._apis = apis
        self._limits = limits
        self._bound: list[BoundListener] = []
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._full = False
        self.counters: Counter[str] = Counter(connections_open=0)

    async def start(self) -> None:
        """Bind all listeners, or none and raise PortTaken, ConfigurationError or OSError."""
        try:
            for listener in self._listeners:
                await self._listen(listener)
        except OSError as error:
            await self.stop()
            raise bind_failure(error, listener.host, listener.port) from error

    async def _listen(self, listener: Listener) -> None:
        # One address per name: each of several would get a free port of its own.
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        sock = socket.create_server(address, family=family)
        advertised = listener.advertised_host or listener.host
        bound = BoundListener(listener.name, advertised, sock.getsockname()[1])
        answering = Answering(bound, self._apis, self.counters)

        def connection() -> Connection:
            return Connection(
                answering, self._limits, self.counters, admit=self._admit, on_end=self._ended
            )

        # asyncio accepts as many at once as it is told to queue.
        server = await loop.create_server(connection, sock=sock, backlog=_ACCEPTED_AT_ONCE)
        sock.listen(_BACKLOG)
        self._servers.append(server)
        self._bound.append(bound)

    def endpoints(self) -> list[Endpoint]:
        """Return what was bound, as it is announced (controller_elected carries it)."""
        return [
            Endpoint(
                listener=bound.name,
                host=bound.host,
                port=bound.port,
                security_protocol=SecurityProtocol.PLAINTEXT,
            )
            for bound in self._bound
        ]

    async def stop(self) -> None:
        """Stop listening, end all connections, and give up what handlers have under way."""
        for server in self._servers:
            server.close()
        await asyncio.gather(*(connection.stop() for connection in self._connections))
        for server in self._servers:
            await server.wait_closed()
        await self._apis.close()

    def _ended(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.counters["connections_open"] -= 1
        self._full = False

    def _admit(self, connection: Connection) -> bool:
        if self.counters["connections_open"] >= self._limits.max_connections:
            self.counters["connections_refused"] += 1
            if not self._full:  # one line per time the quota is reached, not per refusal
                logger.warning(
                    "refusing connections: %d are open, which is max.connections",
                    self._limits.max_connections,
                )
            self._full = True
            return False
        self.counters["connections_open"] += 1
        self.counters["connections_accepted"] += 1
        self._connections.add(connection)
        return True
