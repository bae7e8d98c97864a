"""Of a connection that is lost the front's loop keeps nothing, though nobody looks for cycles."""

from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from pathlib import Path
from typing import Any

import pytest

from streaming.front.forgetting_loop import ForgettingLoop
from streaming.security.tls import server_context
from tests.fixtures.waiting import wait_on_loop
from tests.unit.security.support import Files

GONE_S = 20.0
ROUNDS = 3


pytestmark = pytest.mark.usefixtures("no_cycles_are_looked_for")


class Echo(asyncio.Protocol):
    """Answers with what it gets, and hangs up where it is asked to."""

    def __init__(self, seen: list[weakref.ref[Any]]) -> None:
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._seen += map(weakref.ref, (self, transport))

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)
        if data == b"abort":
            self._transport.abort()


def say(port: int, what: bytes, tls: ssl.SSLContext | None) -> None:
    plain = socket.create_connection(("127.0.0.1", port), timeout=20)
    with plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(what)
        client.recv(100)


def lose(whats: list[bytes], server: ssl.SSLContext | None, client: ssl.SSLContext | None) -> None:
    """Connect and say each of these, several times, until nothing is left of it."""
    seen: list[weakref.ref[Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: Echo(seen), "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        for what in whats * ROUNDS:
            await loop.run_in_executor(None, say, port, what, client)
        await wait_on_loop("all connections", lambda: len(seen) == 2 * ROUNDS * len(whats))
        await wait_on_loop("their end", lambda: not any(one() for one in seen), GONE_S)
        listening.close()

    with asyncio.Runner(loop_factory=ForgettingLoop) as runner:
        runner.run(scenario())


def test_nothing_is_left_of_who_leaves_and_who_is_hung_up_on() -> None:
    lose([b"hello", b"abort"], None, None)


def test_nothing_is_left_of_who_came_in_tls(tmp_path: Path) -> None:
    files = Files(tmp_path)
    server = server_context(files.settings("ssl.client.auth=none"))
    assert server is not None
    lose(
        [b"hello"],
        server.current(),
        ssl.create_default_context(cafile=str(files.authority.trusted)),
    )
