"""The gateway's listeners: accepts connections, within the quota."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from streaming.gateway.admission import Admission
from streaming.gateway.answering import Answering
from streaming.gateway.calls import Apis, BoundListener
from streaming.gateway.connection import Connection, Limits
from streaming.gateway.handshake import Handshake, bound_tls_buffers
from streaming.gateway.serving import Rights, Serving
from streaming.keyfiles.renewed import RenewedContext
from streaming.preflight import bind_failure
from streaming.security.newcomers import KAFKAS_NAMING, Naming
from streaming.security.sasl_server import Sasl
from streaming.wire.endpoints import Endpoint, SecurityProtocol, protocol_of

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

    advertised_host: what brokers and clients are told instead of host; "" = host. tls: what its
    connections are secured with; sasl: how its clients say who they are.
    """

    name: str
    host: str
    port: int
    advertised_host: str = ""
    tls: RenewedContext | None = None
    sasl: Sasl | None = None

    @property
    def security_protocol(self) -> SecurityProtocol:
        """What is spoken on it."""
        return protocol_of(tls=self.tls is not None, sasl=self.sasl is not None)


class Gateway:
    """The Kafka protocol server of this node, on one asyncio event loop.

    counters: connections_open and connections_accepted, connections_refused (over the quota),
    requests_<Api>, unsupported_api_versions, and closed_malformed, closed_too_large,
    closed_unsupported, closed_refused, closed_failed, closed_slow, closed_idle, closed_handshake,
    closed_unauthenticated, closed_not_ready; outdated_tls (secured by files as they were before);
    operations_denied (to clients, by the authorizer), clients_throttled (told to wait, by their
    quota).
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        apis: Apis,
        limits: Limits,
        rights: Rights | None = None,
        naming: Naming = KAFKAS_NAMING,
    ) -> None:
        """Take where to listen, what to serve, what a client may take, what it may ask (without
        rights everything), and how it is found out who it is; `start` binds.
        """
        self._listeners = listeners
        self._rights = rights
        self._naming = naming
        self._apis = apis
        self._limits = limits
        self._bound: list[Endpoint] = []
        self._servers: list[asyncio.Server] = []
        self.counters: Counter[str] = Counter(connections_open=0)
        self._admission = Admission(limits.max_connections, self.counters)

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
        port = sock.getsockname()[1]
        bound = BoundListener(listener.name, advertised, port)
        answering = Answering(bound, self._apis, self.counters)
        serving = Serving(answering, listener.sasl, self._rights, self._naming, self.counters)

        def connection() -> Connection:
            return Connection(serving, self._limits, self.counters, self._admission)

        def handshake(tls: RenewedContext) -> Handshake:
            failed = partial(self._handshake_failed, listener.name)
            context = tls.current()
            if tls.outdated:
                self.counters["outdated_tls"] += 1
            return Handshake(context, connection(), self._admission, failed)

        tls = listener.tls
        if tls is not None:
            bound_tls_buffers()
        # asyncio accepts as many at once as it is told to queue.
        accept = connection if tls is None else partial(handshake, tls)
        server = await loop.create_server(accept, sock=sock, backlog=_ACCEPTED_AT_ONCE)
        sock.listen(_BACKLOG)
        self._servers.append(server)
        protocol = listener.security_protocol
        self._bound.append(
            Endpoint(listener=listener.name, host=advertised, port=port, security_protocol=protocol)
        )

    def certificate_ends_ms(self) -> int | None:
        """Return when the certificate ends that is shown on listeners with TLS, None without."""
        return next((one.tls.ends_ms for one in self._listeners if one.tls is not None), None)

    def endpoints(self) -> list[Endpoint]:
        """Return what was bound, as it is announced (controller_elected carries it)."""
        return list(self._bound)

    async def stop(self) -> None:
        """Stop listening, end all connections, and give up what handlers have under way."""
        for server in self._servers:
            server.close()
        await self._admission.stop()
        for server in self._servers:
            await server.wait_closed()
        await self._apis.close()

    def _handshake_failed(self, listener: str, reason: str) -> None:
        self.counters["closed_handshake"] += 1
        logger.info("no TLS handshake on %s with %s", listener, reason)
