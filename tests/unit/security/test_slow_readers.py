"""Large answers in TLS to who reads slowly, or no more."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any

from streaming.gateway.connection import Limits
from streaming.wire.apis import ApiKey
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.unit.gateway.support import Rig
from tests.unit.security.support import ALL_TOPICS, SECURE, Files, secured


class Sipping:
    """A client in TLS whose socket holds little, and which reads when it is told."""

    def __init__(self, files: Files, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=str(files.authority.trusted))
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        self._socket.setblocking(False)
        self.got = FrameSplitter()

    async def connect(self) -> None:
        await self._loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                self._incoming.write(await self._loop.sock_recv(self._socket, 65_536))
            else:
                await self._flush()
                return

    async def ask(self, request: bytes) -> None:
        self._tls.write(frame(request))
        await self._flush()

    async def sip(self) -> list[bytes]:
        """Read a bit, and return the answers that are whole by now."""
        async with asyncio.timeout(20):
            data = await self._loop.sock_recv(self._socket, 65_536)
        assert data, "the gateway hung up"
        self._incoming.write(data)
        answers: list[bytes] = []
        with suppress(ssl.SSLWantReadError):
            while data := self._tls.read(65_536):
                answers += self.got.feed(data)
        return answers

    def close(self) -> None:
        self._socket.close()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._loop.sock_sendall(self._socket, data)


async def full_of_small_answers(rig: Rig, files: Files) -> tuple[Sipping, int]:
    """A client that read none of so many small answers that the end of the last one does not fit
    into its socket, and how many there are.
    """
    rig.cluster.create("small", [[1, 2, 3]] * 1_200)
    for number in range(3):
        rig.cluster.create(f"wide-{number}", [[1, 2, 3]] * 60_000)
    client = Sipping(files, rig.port(SECURE))
    await client.connect()
    small = {"topics": [{"name": "small"}]}
    await client.ask(encode_request(ApiKey.METADATA, 1, 0, "c", small))
    await rig.counted("requests_Metadata", 1)
    connection: Any
    (connection,) = rig.gateway._admission._present
    below_tls = connection._transport._ssl_protocol._transport
    asked = 0
    while not below_tls.get_write_buffer_size():
        asked += 1
        await client.ask(encode_request(ApiKey.METADATA, 1, asked, "c", small))
        await rig.counted("requests_Metadata", asked + 1)
        await asyncio.sleep(0.01)
    return client, asked + 1


def test_a_large_answer_behind_small_ones_is_whole_when_its_connection_ends(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        client, asked = await full_of_small_answers(rig, files)
        await client.ask(encode_request(ApiKey.METADATA, 12, asked, "c", ALL_TOPICS))
        await client.ask(struct.pack(">hhih", 999, 0, 1, -1))  # ends the connection
        await rig.counted("requests_Metadata", asked + 1)
        await asyncio.sleep(0.2)  # until it is written, as far as it can be
        answers: list[bytes] = []
        while len(answers) <= asked:
            answers += await client.sip()
        assert [decode_response(3, 1, one)[0] for one in answers[:-1]] == [*range(asked)]
        last, body = decode_response(ApiKey.METADATA, 12, answers[-1])
        assert last == asked and len(body["topics"]) == 4
        await rig.counted("closed_unsupported", 1)
        client.close()

    secured(scenario, given)


def test_who_reads_no_more_of_a_large_answer_behind_small_ones_is_dropped(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        client, asked = await full_of_small_answers(rig, files)
        await client.ask(encode_request(ApiKey.METADATA, 12, asked, "c", ALL_TOPICS))
        await rig.counted("requests_Metadata", asked + 1)
        await asyncio.sleep(0.2)  # until it is written, as far as it can be
        answers: list[bytes] = []
        while len(answers) < asked:
            answers += await client.sip()
        await rig.counted("closed_slow", 1)
        client.close()

    secured(scenario, given, Limits(write_timeout_ms=1_000))
