"""An answer is read when it is whole, small enough, and to what was asked."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from streaming.wire.errors import FrameTooLarge, MalformedFrame, WireError
from streaming.wire.exchange import Exchange
from streaming.wire.frames import frame
from streaming.wire.passing import request_prefix
from tests.fixtures.waiting import WAIT_S

LIMIT_BYTES = 100
HEAD = struct.pack(">hhi", 3, 9, 4711)


def answer_to(request: bytes, body: bytes = b"", off_by: int = 0) -> bytes:
    return struct.pack(">i", request_prefix(request).correlation_id + off_by) + body


class Broker:
    """Answers each request with the bytes that `says` makes of it, then hangs up if it says so."""

    def __init__(self, says: Callable[[bytes], bytes], hangs_up: bool = False) -> None:
        self.says, self.hangs_up = says, hangs_up
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(EOFError, ConnectionError):
            while not (self.requests and self.hangs_up):
                size = int.from_bytes(await reader.readexactly(4), "big")
                self.requests.append(await reader.readexactly(size))
                writer.write(self.says(self.requests[-1]))
        writer.close()


def run(broker: Broker, scenario: Callable[[Exchange], Awaitable[None]]) -> None:
    async def play() -> None:
        server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        exchange = Exchange(*streams, LIMIT_BYTES)
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(exchange)
        finally:
            exchange.abort()
            await streams[1].wait_closed()
            server.close()

    asyncio.run(play())


def fails(broker: Broker, error: type[Exception], match: str) -> None:
    async def scenario(exchange: Exchange) -> None:
        with pytest.raises(error, match=match):
            await exchange.ask(HEAD)

    run(broker, scenario)


def test_each_request_gets_an_id_of_ours_and_its_answer() -> None:
    broker = Broker(lambda request: frame(answer_to(request, request[8:])))

    async def scenario(exchange: Exchange) -> None:
        for number, body in enumerate((b"first", b"", b"x" * (LIMIT_BYTES - 4)), 1):
            assert await exchange.ask(HEAD + body) == struct.pack(">i", number) + body
        assert exchange.usable

    run(broker, scenario)
    assert [request_prefix(request).api_version for request in broker.requests] == [9, 9, 9]


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_a_request_in_parts_arrives_whole(large: int) -> None:
    parts = [memoryview(bytes([number]) * large) for number in range(3)]
    broker = Broker(lambda request: frame(answer_to(request)))

    async def scenario(exchange: Exchange) -> None:
        await exchange.send(HEAD, *parts)
        await exchange.answer()

    run(broker, scenario)
    assert broker.requests == [struct.pack(">hhi", 3, 9, 1) + b"".join(parts)]


def test_an_answer_that_is_too_large_is_refused_by_its_size_alone() -> None:
    size = struct.pack(">i", LIMIT_BYTES + 1)
    fails(Broker(lambda _: size), FrameTooLarge, "frame of 101 bytes exceeds the limit of 100")


def test_a_negative_size_is_refused() -> None:
    fails(Broker(lambda _: b"\xff\xff\xff\xff"), MalformedFrame, "negative frame size -1")


@pytest.mark.parametrize("off_by", [-1, 1])
def test_an_answer_to_another_request_is_refused(off_by: int) -> None:
    broker = Broker(lambda request: frame(answer_to(request, off_by=off_by)))
    fails(broker, MalformedFrame, f"answer {1 + off_by} to request 1")


@pytest.mark.parametrize("sent_bytes", range(13))
def test_a_cut_answer_says_that_the_broker_hung_up(sent_bytes: int) -> None:
    broker = Broker(lambda request: frame(answer_to(request, b"whole"))[:sent_bytes], hangs_up=True)
    fails(broker, ConnectionError, "the broker hung up")


def test_an_answer_without_room_for_an_id_is_malformed() -> None:
    fails(Broker(lambda _: frame(b"abc")), WireError, "response header cut off at byte 3")


def test_a_connection_that_the_broker_left_is_not_usable() -> None:
    broker = Broker(lambda request: frame(answer_to(request)), hangs_up=True)

    async def scenario(exchange: Exchange) -> None:
        await exchange.ask(HEAD)
        while exchange.usable:
            await asyncio.sleep(0.001)

    run(broker, scenario)
