"""Opens connections to brokers as their listeners want them: plain, or secured with TLS."""

from __future__ import annotations

import asyncio
import ssl
from typing import TypeAlias

from streaming.security.tls import client_context
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint, SecurityProtocol

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Connector:
    """Opens connections; used from any event loop."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """tls: what SSL is spoken with; without it only PLAINTEXT is spoken."""
        self._contexts: dict[SecurityProtocol, ssl.SSLContext | None] = {
            SecurityProtocol.PLAINTEXT: None
        }
        if tls is not None:
            self._contexts[SecurityProtocol.SSL] = tls

    @classmethod
    def of(cls, settings: Settings) -> Connector:
        """Return what speaks as configured; raises ConfigurationError as `client_context`."""
        return cls(client_context(settings))

    def speaks(self, end: Endpoint) -> bool:
        """Return whether this can connect to an endpoint at all."""
        return end.security_protocol in self._contexts

    async def open(self, end: Endpoint) -> Streams:
        """Connect to an endpoint; raises OSError, also where the handshake fails."""
        if not self.speaks(end):
            raise ConnectionError(f"this node does not speak {end.security_protocol.name}")
        context = self._contexts[end.security_protocol]
        return await asyncio.open_connection(end.host, end.port, ssl=context)
