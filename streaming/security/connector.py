"""Opens connections to brokers as their listeners want them: in TLS or not, and with our name or
without.
"""

from __future__ import annotations

import asyncio

from streaming.keyfiles.renewed import RenewedContext
from streaming.security.addresses import connect
from streaming.security.credentials import own_credentials
from streaming.security.ourselves import Credentials
from streaming.security.sasl_client import authenticate
from streaming.security.tls import client_context
from streaming.settings import Settings
from streaming.wire.endpoints import Endpoint
from streaming.wire.exchange import ANSWER_MAX_BYTES, Exchange


class Connector:
    """Opens connections; used from any event loop."""

    def __init__(self, tls: RenewedContext | None = None, ours: Credentials | None = None) -> None:
        """tls: what TLS is spoken with; ours: who we are. What is missing is not spoken."""
        self._tls = tls
        self._ours = ours

    @classmethod
    def of(cls, settings: Settings) -> Connector:
        """Return what speaks as configured; raises ConfigurationError as `client_context` and
        `own_credentials`.
        """
        return cls(client_context(settings), own_credentials(settings))

    def speaks(self, end: Endpoint) -> bool:
        """Return whether this can connect to an endpoint at all."""
        protocol = end.security_protocol
        if protocol.tls and self._tls is None:
            return False
        return not protocol.sasl or self._ours is not None

    async def open(self, end: Endpoint, answer_max_bytes: int = ANSWER_MAX_BYTES) -> Exchange:
        """Connect to an endpoint; raises OSError, also where the handshake fails or the broker does
        not know us, and WireError.
        """
        protocol = end.security_protocol
        if not self.speaks(end):
            raise ConnectionError(f"this node does not speak {protocol.name}")
        try:
            streams = await _streams(end, self._tls if protocol.tls else None)
        except OSError:
            raise
        except ValueError as error:  # a host that is none; a certificate that Python cannot read
            raise ConnectionError(f"{end.host}:{end.port}: {error}") from error
        connection = Exchange(*streams, answer_max_bytes)
        if protocol.sasl and self._ours is not None:
            try:
                connection.end_after(await authenticate(connection, self._ours, end.host))
            except BaseException:
                connection.abort()
                raise
        return connection


async def _streams(
    end: Endpoint, tls: RenewedContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connected = await connect(end.host, end.port)
    context, named = (None, None) if tls is None else (tls.current(), end.host)
    return await asyncio.open_connection(sock=connected, ssl=context, server_hostname=named)
