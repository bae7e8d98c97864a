"""Stub brokers: real sockets and real registrations in ZooKeeper, one asyncio process for all.

A worker (tests.bench.worker): start, register, drop, records, told, forget. Each request is noted
with the wall clock at which its last byte was read, before it is answered. Registrations are
ephemeral znodes of one session; dropping several is one ZooKeeper transaction.

Arguments: where ZooKeeper is, the brokers' listener name, and `keep` to keep what is told.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from streaming.process.wall_clock import wall_clock_ms
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.frames import frame
from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    BrokerZNode,
    broker_bytes,
    broker_path,
)
from tests.bench.stub_answers import answer, read_header
from tests.bench.told import Kept, write_told
from tests.bench.worker import open_answers, serve

HOST = "127.0.0.1"
LISTENER = "PLAINTEXT"
_SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Received:
    """One request: at_ns is the wall clock when all of its bytes were there."""

    at_ns: int
    broker_id: int
    api: str
    version: int
    request_bytes: int


class BenchBrokers:
    """Listeners on one event loop in a thread; the calls come from another thread."""

    def __init__(self, connect: str, listener: str = LISTENER, *, keep: bool = False) -> None:
        self._session = ZkSession(connect, 30_000)
        self._session.connect()
        self._session.ensure_path(BROKER_IDS_PATH)
        self._listener = listener
        self._keep = keep
        self._received: list[Received] = []
        self._kept: list[Kept] = []
        self._epochs: dict[int, int] = {}
        self._ports: dict[int, int] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def start(self, ids: list[int]) -> dict[int, int]:
        """Listen on a port for each id and register all; return their epochs (czxid)."""
        for broker_id in ids:
            listening = asyncio.run_coroutine_threadsafe(self._listen(broker_id), self._loop)
            self._ports[broker_id] = listening.result(10)
        return self.register(ids)

    def register(self, ids: list[int]) -> dict[int, int]:
        """Register brokers in one transaction; return their epochs."""
        self._multi([Create(broker_path(id_), self._znode(id_), ephemeral=True) for id_ in ids])
        epochs = {id_: self._session.get(broker_path(id_)).czxid for id_ in ids}
        self._epochs.update(epochs)
        return epochs

    def drop(self, ids: list[int]) -> None:
        """Take registrations away in one transaction; the sockets stay open."""
        self._multi([Delete(broker_path(id_)) for id_ in ids])

    def records(self, since: int) -> list[dict]:
        """Return what was received, from a place in the list on."""
        return [asdict(one) for one in self._received[since:]]

    def summary(self, since_ns: int) -> dict:
        """Return how many requests came since a moment, their bytes, when the last one did, which
        brokers got any, and which were told what they lead and follow.
        """
        recent = [one for one in self._received if one.at_ns >= since_ns]
        return {
            "requests": len(recent),
            "bytes": sum(one.request_bytes for one in recent),
            "last_ns": max((one.at_ns for one in recent), default=0),
            "brokers": sorted({one.broker_id for one in recent}),
            "loaded": sorted(
                {one.broker_id for one in recent if one.api == ApiKey.LEADER_AND_ISR.name}
            ),
        }

    def told(self, since_ns: int, path: str) -> int:
        """Write what each broker was told since a moment to a file; return its bytes."""
        kept = [one for one in self._kept if one.at_ns >= since_ns]
        return write_told(kept, self._epochs, Path(path))

    def forget(self) -> None:
        """Drop what was kept so far."""
        self._kept.clear()

    def close(self) -> None:
        self._session.close()

    def _multi(self, ops: list[Create | Delete]) -> None:
        results = self._session.multi(ops)
        assert all(code == 0 for code, _ in results), results

    def _znode(self, broker_id: int) -> bytes:
        end = Endpoint(
            listener=self._listener,
            host=HOST,
            port=self._ports[broker_id],
            security_protocol=SecurityProtocol.PLAINTEXT,
        )
        return broker_bytes(BrokerZNode([end]), wall_clock_ms())

    def _take(self, broker_id: int, request: memoryview) -> bytes:
        """Note a request whose last byte was just read; return what is answered."""
        at_ns = time.time_ns()
        api, version, correlation_id, start = read_header(request)
        self._received.append(Received(at_ns, broker_id, api.name, version, len(request)))
        if self._keep:
            self._kept.append(Kept(at_ns, broker_id, api, bytes(request), start))
        return frame(answer(api, version, correlation_id, request, start))

    async def _listen(self, broker_id: int) -> int:
        server = await self._loop.create_server(
            lambda: _Connection(partial(self._take, broker_id)), HOST, 0
        )
        return server.sockets[0].getsockname()[1]


class _Connection(asyncio.BufferedProtocol):
    """Reads requests straight into memory of their size: what the stubs take of the cores, the
    controller does not have.
    """

    def __init__(self, take: Callable[[memoryview], bytes]) -> None:
        self._take = take
        self._buffer = memoryview(bytearray(_SIZE_BYTES))
        self._filled = 0
        self._in_request = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled < len(self._buffer):
            return
        full, self._filled = self._buffer, 0
        size = _SIZE_BYTES if self._in_request else int.from_bytes(full, "big")
        self._buffer = np.empty(size, np.uint8).data
        if self._in_request:
            self._transport.write(self._take(full))
        self._in_request = not self._in_request


def main() -> None:
    answer_with = open_answers()
    stubs = BenchBrokers(*sys.argv[1:3], keep="keep" in sys.argv[3:])
    try:
        serve(
            {
                "start": stubs.start,
                "register": stubs.register,
                "drop": stubs.drop,
                "records": stubs.records,
                "summary": stubs.summary,
                "told": stubs.told,
                "forget": stubs.forget,
            },
            answer_with,
        )
    finally:
        stubs.close()


if __name__ == "__main__":
    main()
