"""A connection to a listener in TLS until its handshake is through.

asyncio can do handshakes by itself, but tells nobody of one that fails, and of a connection only
when its handshake is through: without a certificate, somebody could take all files of the process.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable

from streaming.gateway.admission import Admission
from streaming.gateway.connection import Connection

_HANDSHAKE_TIMEOUT_S = 10.0
_SHUTDOWN_TIMEOUT_S = 5.0
_RECORD_BYTES = 16 * 1024


def bound_tls_buffers() -> None:
    """Have asyncio read one TLS record at a time: it takes 256 KiB for each connection otherwise,
    read or not.
    """
    sslproto.SSLProtocol.max_size = _RECORD_BYTES


class Handshake(asyncio.Protocol):
    """Has the place of a connection among all, which takes it over."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        connection: Connection,
        admission: Admission,
        on_failure: Callable[[str], None],
    ) -> None:
        """Take what to secure it with, what serves it then, who gives it a place, and what to call
        with the reason if the handshake fails.
        """
        self._tls = tls
        self._connection = connection
        self._admission = admission
        self._on_failure = on_failure
        self._early: list[bytes] = []
        self._eof = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many connections."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._admission.admit(self):
            transport.abort()
            return
        # What the operating system has not taken stays where TLS notices it.
        transport.set_write_buffer_limits(high=0)
        transport.pause_reading()  # what comes now is for TLS
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        """Keep what came with the end of the handshake."""
        self._early.append(data)

    def eof_received(self) -> bool:
        """Keep that, too."""
        self._eof = True
        return False

    async def stop(self) -> None:
        """Hang up."""
        self._task.cancel()
        self._transport.abort()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        host, port = (self._transport.get_extra_info("peername") or ("?", "?"))[:2]
        try:
            secured = await self._secured()
        except Exception as error:  # noqa: BLE001 - OpenSSL's, or of Python reading a certificate
            self._admission.leave(self)
            self._on_failure(f"{host}:{port}: {str(error) or 'the client hung up'}")
            error.__traceback__ = None  # asyncio's frames know us, and the future that it came from
        except asyncio.CancelledError:
            self._admission.leave(self)
            raise
        else:
            self._hand_over(secured)

    async def _secured(self) -> asyncio.Transport:
        secured = await asyncio.get_running_loop().start_tls(
            self._transport,
            self,
            self._tls,
            server_side=True,
            ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S,
            ssl_shutdown_timeout=_SHUTDOWN_TIMEOUT_S,
        )
        if secured is None or secured.is_closing():
            raise ConnectionError("the client hung up")
        return secured

    def _hand_over(self, secured: asyncio.Transport) -> None:
        secured.set_protocol(self._connection)
        self._connection.take_over(secured, self)
        for data in self._early:
            self._connection.data_received(data)
        if self._eof:
            self._connection.eof_received()
