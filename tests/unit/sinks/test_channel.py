"""A request reaches its broker whole, however large it is."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streaming.security import addresses
from streaming.security.connector import Connector
from streaming.sinks.channel import BrokerChannel, Queued, Timing
from streaming.sinks.plan import SharedRequest
from streaming.sinks.rows import partition_rows
from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request_header
from tests.bench.stub_answers import answer, read_header
from tests.fixtures.endpoints import plain_endpoint
from tests.fixtures.waiting import WAIT_S

EPOCH = 0x7EDCBA987654
CLIENT_ID = "helmstream"
NAMED, OTHER = "xVg7K6qyTvmxpuD7RnqU_w", "xVg7K6qyTvmxpuD7RnqU_Q"


def request_about(
    count: int, api: ApiKey = ApiKey.UPDATE_METADATA, topic_ids: Sequence[str | None] = (None,)
) -> SharedRequest:
    """A request about partitions of topics with these ids, as many of each."""
    numbers = np.arange(count, dtype=np.int32)
    lists = np.stack([numbers % 7, numbers % 5 + 7], axis=1)
    columns = dict.fromkeys(
        ("partition", "controller_epoch", "leader", "leader_epoch", "partition_epoch"), numbers
    )
    columns |= dict.fromkeys(("isr", "replicas"), lists)
    columns |= dict.fromkeys(("offline", "adding", "removing"), lists < 0)
    columns["recovery"] = np.zeros(count, dtype=np.int8)
    topics = [f"t{number}" for number in range(len(topic_ids))]
    of_topic = np.sort(numbers % len(topics))
    return SharedRequest(api, 1000, 5, partition_rows(columns, of_topic, topics, topic_ids))


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def channel_to(
    serve: Serve, backoff_ms: int, *, name: str = "", timeout_s: float = WAIT_S
) -> AsyncIterator[BrokerChannel]:
    """Run a channel to a broker of a name, else of an address, that serves connections so."""
    accepted: list[asyncio.StreamWriter] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(noted, "127.0.0.1", 0, limit=1 << 24)
    host, port = server.sockets[0].getsockname()[:2]
    channel = BrokerChannel(
        1,
        EPOCH,
        plain_endpoint(name or host, port),
        connector=Connector(),
        timing=Timing(socket_timeout_ms=int(timeout_s * 1000), retry_backoff_ms=backoff_ms),
        on_answer=lambda _: None,
        on_sent=lambda *_: None,
        on_confirmed=lambda *_: None,
    )
    running = asyncio.ensure_future(channel.run())
    try:
        async with asyncio.timeout(WAIT_S):
            yield channel
    finally:
        running.cancel()
        server.close()
        for writer in accepted:
            writer.transport.abort()  # who serves it may be cancelled before it has closed it
        await asyncio.wait([running], timeout=WAIT_S)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def answer_until(
    last: ApiKey, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer requests, up to one of an API."""
    api = None
    while api is not last:
        body = await read_request(reader)
        api, version, correlation_id, start = read_header(body)
        writer.write(frame(answer(api, version, correlation_id, body, start)))


async def received(request: SharedRequest, instead: bytes = b"") -> bytes:
    """Return what a broker received of one request; instead: what it says first, once."""
    said = [instead] if instead else []
    got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not got.done():
            body = await read_request(reader)
            api, version, correlation_id, start = read_header(body)
            if api is request.api:
                got.set_result(body)
                break
            writer.write(
                said.pop() if said else frame(answer(api, version, correlation_id, body, start))
            )
        writer.close()

    async with channel_to(serve, backoff_ms=10) as channel:
        channel.put(Queued(request, 1))
        return await got


@pytest.mark.parametrize("count", [1, 100_000])
def test_a_request_arrives_whole(count: int) -> None:
    request = request_about(count)
    body = asyncio.run(received(request))
    api, version, correlation_id, start = read_header(body)
    expected = b"".join(request.encode(version).parts(EPOCH))
    assert body == encode_request_header(api, version, correlation_id, CLIENT_ID) + expected
    assert start == len(body) - len(expected)


def test_a_broker_that_says_what_is_no_answer_is_connected_to_again() -> None:
    request = request_about(1)
    body = asyncio.run(received(request, instead=b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert read_header(body)[0] is request.api


def test_a_broker_that_hung_up_meanwhile_is_connected_to_again_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connections: list[asyncio.Task[Any] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        await answer_until(ApiKey.UPDATE_METADATA, reader, writer)
        writer.close()
        await writer.wait_closed()

    async def play() -> None:
        async with channel_to(serve, backoff_ms=int(2 * WAIT_S * 1000)) as channel:
            for _ in range(2):
                channel.put(Queued(request_about(1), 1))
                while len(channel):
                    await asyncio.sleep(0.001)
                await asyncio.gather(*filter(None, connections))

    asyncio.run(play())
    assert len(connections) == 2
    assert caplog.records == []


def test_a_broker_that_reads_no_more_keeps_no_connections_of_ours() -> None:
    accepted: list[asyncio.StreamWriter] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        body = await read_request(reader)
        api, version, correlation_id, start = read_header(body)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(frame(answer(api, version, correlation_id, body, start)))
        await ended.wait()
        writer.close()

    async def play() -> tuple[int, int]:
        before = descriptors()
        async with channel_to(serve, backoff_ms=1, timeout_s=0.2) as channel:
            channel.put(Queued(request_about(400_000), 1))
            while len(accepted) < 8:
                await asyncio.sleep(0.01)
            held = descriptors() - before - len(accepted)
            ended.set()
            return held, len(accepted)

    held, tried = asyncio.run(play())
    assert held < tried // 2  # who listens, and the present try's


def test_a_broker_is_told_at_the_next_address_of_its_name_when_the_first_one_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ClusterConnectionStates.moveToNextAddress."""
    monkeypatch.setattr(addresses, "_NEXT_ADDRESS_S", 0.2)
    told = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer_until(ApiKey.UPDATE_METADATA, reader, writer)
        told.set()
        writer.close()

    resolve = socket.getaddrinfo

    def resolved(host: str, port: int, *given: Any, **named: Any) -> Any:
        hosts = ["127.0.0.9", "127.0.0.1"] if host == "broker" else [host]
        return [found for one in hosts for found in resolve(one, port, *given, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)

    async def play() -> None:
        async with channel_to(serve, backoff_ms=1, name="broker", timeout_s=5) as channel:
            with silent("127.0.0.9", channel.end.port):
                channel.put(Queued(request_about(1), 1))
                await told.wait()

    asyncio.run(play())


@contextmanager
def silent(host: str, port: int) -> Iterator[None]:
    """Have an address that answers no attempt to connect: nobody accepts, and its queue is full."""
    with ExitStack() as opened:
        listening = opened.enter_context(socket.socket())
        listening.bind((host, port))
        listening.listen(0)
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "topic_ids, version", [([NAMED, OTHER], 7), ([NAMED, None], 4), ([None, None], 4)]
)
def test_topics_without_an_id_are_told_in_a_version_that_is_answered_by_name(
    topic_ids: list[str | None], version: int
) -> None:
    request = request_about(4, ApiKey.LEADER_AND_ISR, topic_ids)
    assert read_header(asyncio.run(received(request)))[1] == version
    assert request_about(4, ApiKey.UPDATE_METADATA, topic_ids).max_version == 8


def test_a_topic_without_id_that_is_not_in_the_request_changes_nothing() -> None:
    request = request_about(4, ApiKey.LEADER_AND_ISR, [NAMED, None])
    of_the_first = request.rows.select(request.rows.topic_index == 0)
    assert SharedRequest(ApiKey.LEADER_AND_ISR, 1000, 5, of_the_first).max_version == 7
