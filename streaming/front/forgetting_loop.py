"""The front's event loop: nothing is left of a connection that it has lost.

A transport of asyncio's knows what reads its socket by a method of its own, from Python 3.12 on
also what writes, and so itself: it stays in this cycle when it is closed, with its socket. The
front leaves what has lived for a while out of the garbage collector's looks
(`streaming.process.garbage`).
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import selector_events
from typing import Any

_SocketTransport: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]


class _ForgettingTransport(_SocketTransport):  # type: ignore[misc]
    """Lets go of its methods when it tells its protocol that the connection is lost."""

    def _call_connection_lost(self, error: Exception | None) -> None:
        super()._call_connection_lost(error)
        self._read_ready_cb = self._write_ready = None


class ForgettingLoop(asyncio.SelectorEventLoop):
    """Makes such transports for connections, below TLS too."""

    def _make_socket_transport(
        self,
        sock: socket.socket,
        protocol: asyncio.BaseProtocol,
        waiter: asyncio.Future[None] | None = None,
        *,
        extra: dict[str, Any] | None = None,
        server: Any = None,
    ) -> asyncio.Transport:
        transport: asyncio.Transport = _ForgettingTransport(
            self, sock, protocol, waiter, extra, server
        )
        return transport
