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
        self._serving: set[asyncio.Task[None]] = set()
        self._stopping = False

    async def start(self) -> None:
        """Listen; a socket file that a killed front left behind is replaced."""
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._served, self._path, limit=self._buffer_bytes
        )

    async def stop(self) -> None:
        """Stop listening, and cancel what is served: it closes its connection."""
        if self._server is not None:
            self._stopping = True
            self._server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving)
            await self._server.wait_closed()
            self._path.unlink(missing_ok=True)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server makes a task for each connection"
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            if not self._stopping:  # asyncio logs a connection's task that was cancelled
                raise
        finally:
            self._serving.discard(task)
