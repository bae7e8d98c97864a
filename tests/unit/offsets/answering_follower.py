"""A broker that follows us and answers what it is asked of its logs, on a real socket."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.offsets.batches import BatchRecord, encode_batch, spans, stamped
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.history import History
from streaming.security.connector import Connector
from streaming.wire.apis import GATEWAY_APIS, ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import decode_request
from streaming.wire.responses import encode_response
from tests.fixtures.waiting import WAIT_S
from tests.unit.gateway.support import registration
from tests.unit.offsets.support import OLDER, Led

FENCED_LEADER_EPOCH = 74
EARLIEST = -2
ANY_REPLICA = -2


class Follower:
    """A broker with a batch of two records at each offset in `at`. ends: what it has of epochs;
    after them it knows none; epochs_error: what it says instead. highest: the versions that it
    knows. answering: it says what it is asked; off_by: it says other numbers; without: what it says
    to Fetch before that, of no topic. hangs_up: after each answer. end: of its log; epoch: under
    which it follows.
    """

    def __init__(self, *at: int) -> None:
        batch = encode_batch([BatchRecord(1, b"k", b"v"), BatchRecord(2, b"l", b"w")])
        self.batches = {offset: stamped(batch, offset, OLDER) for offset in at}
        self.start, self.end, self.epoch = 0, 103, 9
        self.versions: set[tuple[int, int]] = set()
        self.highest = {ApiKey.FETCH: 17, ApiKey.LIST_OFFSETS: 9}
        self.high_watermark = 100
        self.ends: dict[int, EpochEnd] = {}
        self.epochs_error = 0
        self.asked = 0
        self.limits: list[int] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self.off_by: Counter[str] = Counter()
        self.without: list[dict[str, int]] = []
        self.hangs_up = False
        self.connections: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.current_task())
        with suppress(EOFError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = decode_request(await reader.readexactly(size), GATEWAY_APIS)
                key, version = request.header.api_key, request.header.api_version
                id_ = request.header.correlation_id
                if key == ApiKey.API_VERSIONS:
                    writer.write(frame(encode_response(key, version, id_, self._served())))
                    continue
                self.asked += 1
                self.versions.add((key, version))
                answer = self._fetched if key == ApiKey.FETCH else self._offsets
                body = answer(request.body)
                await self.answering.wait()
                id_ += self.off_by["correlation_id"]
                writer.write(frame(encode_response(key, version, id_, body)))
                if self.hangs_up:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _served(self) -> dict[str, Any]:
        ranges = [
            {"api_key": key, "min_version": 1, "max_version": most}
            for key, most in self.highest.items()
        ]
        return {"error_code": 0, "api_keys": ranges}

    def _fetched(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.without:
            return {"responses": [], **self.without.pop(0)}
        (topic,) = body["topics"]
        (asked,) = topic["partitions"]
        self.limits.append(max(body["max_bytes"], asked["partition_max_bytes"]))
        offset, last_epoch = asked["fetch_offset"], asked.get("last_fetched_epoch", UNKNOWN)
        found: dict[str, Any] = {"error_code": 0, "records": b""}
        if last_epoch >= 0 and self.epochs_error:
            found["error_code"] = self.epochs_error
        elif last_epoch >= 0 and last_epoch in self.ends:
            end = self.ends[last_epoch]
            found["diverging_epoch"] = {"epoch": end.epoch, "end_offset": end.end_offset}
        elif last_epoch >= 0 or offset < self.start:
            found["error_code"] = ProtocolError.OFFSET_OUT_OF_RANGE
        else:
            found["records"] = b"".join(
                batch for at, batch in self.batches.items() if at + 1 >= offset
            )
        found |= {"high_watermark": self.high_watermark}
        found["partition_index"] = asked["partition"] + self.off_by["partition_index"]
        return {"responses": [{"topic": topic["topic"], "partitions": [found]}]}

    def _offsets(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["replica_id"] == ANY_REPLICA, "who is none is told by the leader alone"
        (topic,) = body["topics"]
        said = [
            {
                "partition_index": one["partition_index"] + self.off_by["partition_index"],
                "error_code": 0
                if one["current_leader_epoch"] in (UNKNOWN, self.epoch)
                else FENCED_LEADER_EPOCH,
                "timestamp": UNKNOWN,
                "offset": self.start if one["timestamp"] == EARLIEST else self.end,
            }
            for one in topic["partitions"]
        ]
        return {"topics": [{"name": topic["name"], "partitions": said}]}


def registered_at(server: asyncio.Server, broker: int) -> dict[str, Any]:
    host, port = server.sockets[0].getsockname()
    one = registration(broker, "INTERNAL")
    one["endpoints"][0] |= {"host": host, "port": port}
    return one


@asynccontextmanager
async def history_of(led: Led) -> AsyncIterator[History]:
    """What reads the brokers' logs, in less than the time of a test."""
    history = History(led.leader, led.cluster.image, "INTERNAL", Connector(), WAIT_S)
    try:
        async with asyncio.timeout(WAIT_S):
            yield history
    finally:
        history.close()


def offsets(data: bytes) -> list[int]:
    return [span.base_offset for span in spans(data)]
