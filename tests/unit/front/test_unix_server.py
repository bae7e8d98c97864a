"""A listener on a Unix socket that stops while somebody is connected."""

from __future__ import annotations

import asyncio
import logging

from streaming.front.unix_server import UnixServer
from tests.fixtures.waiting import WAIT_S


def test_it_ends_quietly_while_somebody_is_connected(tmp_path, caplog):
    ended: list[str] = []

    async def run() -> None:
        serving = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.set()
            try:
                await reader.readexactly(1)
            finally:
                ended.append("served")
                writer.close()

        server = UnixServer(tmp_path / "s.sock", serve)
        await server.start()
        _, writer = await asyncio.open_unix_connection(tmp_path / "s.sock")
        await asyncio.wait_for(serving.wait(), WAIT_S)
        await server.stop()
        assert ended == ["served"]
        writer.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert [one.getMessage() for one in caplog.records] == []
