"""Brokers on real sockets that answer what they are told to, for a gateway that passes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from streaming.wire.apis import ApiKey
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.passing import request_prefix
from streaming.wire.requests import decode_request
from streaming.wire.responses import decode_response, encode_response
from tests.unit.gateway.support import Rig

LISTENER = "CLIENT"
RANGES: dict[int, tuple[int, int]] = {3: (0, 12), 10: (0, 6), 18: (0, 4), 29: (0, 3), 48: (0, 1)}
RANGES |= {32: (0, 4), 33: (0, 2), 44: (0, 1)}

Answer = Callable[[bytes], Awaitable[bytes | None]]
"""Request to answer; None hangs up."""


@dataclass
class AnsweringBroker:
    """A broker that notes every request but ApiVersions, which it answers by itself."""

    id: int
    ranges: dict[int, tuple[int, int]] = field(default_factory=lambda: dict(RANGES))
    answer: Answer | None = None
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """Close all connections, as a broker does with those that idle."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    def registration(self, epoch: int = 100) -> dict[str, Any]:
        end = {"listener": LISTENER, "host": "127.0.0.1", "port": self.port}
        return {
            "id": self.id,
            "epoch": epoch + self.id,
            "rack": None,
            "endpoints": [end | {"security_protocol": 0}],
        }

    def bodies(self, *api_keys: int) -> list[dict[str, Any]]:
        """The bodies of the requests that came so far."""
        return [decode_request(one, api_keys).body for one in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        splitter = FrameSplitter()
        while data := await reader.read(65_536):
            for request in splitter.feed(data):
                answer = await self._answer(request)
                if answer is None:
                    writer.close()
                    return
                writer.write(frame(answer))

    async def _answer(self, request: bytes) -> bytes | None:
        prefix = request_prefix(request)
        if prefix.api_key == ApiKey.API_VERSIONS:
            keys = [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, (low, high) in self.ranges.items()
            ]
            head = (prefix.api_key, prefix.api_version, prefix.correlation_id)
            return encode_response(*head, {"error_code": 0, "api_keys": keys})
        self.requests.append(request)
        assert self.answer is not None, "an unexpected request"
        return await self.answer(request)


def answering(*api_keys: int, **fields: Any) -> Answer:
    """Answer with these fields, or what functions of the request's body make of it."""

    async def answer(request: bytes) -> bytes:
        asked = decode_request(request, api_keys)
        body = {name: made(asked.body) if callable(made) else made for name, made in fields.items()}
        head = asked.header
        return encode_response(head.api_key, head.api_version, head.correlation_id, body)

    return answer


@asynccontextmanager
async def brokers(rig: Rig, *stubs: AnsweringBroker) -> AsyncIterator[None]:
    """Make stubs the only brokers of a gateway's cluster."""
    for stub in stubs:
        await stub.start()
    gone = [id_ for id_ in (1, 2, 3) if id_ not in {stub.id for stub in stubs}]
    known = [id_ for id_ in (1, 2, 3) if id_ not in gone]
    here = [stub.registration() for stub in stubs]
    changes = {
        "unregistered": gone,
        "updated": [one for one in here if one["id"] in known],
        "registered": [one for one in here if one["id"] not in known],
    }
    rig.cluster.happen("broker_registrations_changed", "", changes)
    try:
        yield
    finally:
        for stub in stubs:
            await stub.stop()


async def ask_raw(rig: Rig, request: bytes) -> bytes:
    """Send bytes as they are and return the answer's."""
    client = await rig.client()
    client.writer.write(frame(request))
    return await client.read_frame()


def ranges_of(answer: bytes, version: int = 0) -> dict[int, tuple[int, int]]:
    """What an ApiVersions answer says."""
    _, body = decode_response(ApiKey.API_VERSIONS, version, answer)
    return {one["api_key"]: (one["min_version"], one["max_version"]) for one in body["api_keys"]}
