"""A listener on a Unix socket that a killed front may have left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_BUFFER_BYTES = 1 << 16


class UnixServer:
    """Calls `serve` for each connection, between start and stop."""

    def __init__(self, path: Path, serve: Serve, *, buffer_bytes: int = _BUFFER_BYTES) -> None:
        """Remember where to listen; `start` listens. buffer_bytes: kept of what is not yet read."""
        self._path = path
        self._serve = serve
        self._buffer_bytes = buffer_bytes
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; a socket file that a killed front left behind is replaced."""
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, self._path, limit=self._buffer_bytes
        )

    async def stop(self) -> None:
        """Stop listening; connections are their servant's to close."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._path.unlink(missing_ok=True)
