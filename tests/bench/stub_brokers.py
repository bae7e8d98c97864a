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
from dataclasses import asdict, dataclass
from pathlib import Path

from streaming.process.wall_clock import wall_clock_ms
from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    BrokerZNode,
    Endpoint,
    SecurityProtocol,
    broker_bytes,
    broker_path,
)
from tests.bench.stub_answers import answer, read_header
from tests.bench.told import Kept, write_told
from tests.bench.worker import open_answers, serve

HOST = "127.0.0.1"
LISTENER = "PLAINTEXT"
_BUFFER_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Received:
    """One request: at_ns is the wall clock when all of its bytes were there."""

    at_ns: int
    broker_id: int
    api: str
    version: int
    request_bytes: int


class StubBrokers:
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
        end = Endpoint(self._listener, HOST, self._ports[broker_id], SecurityProtocol.PLAINTEXT)
        return broker_bytes(BrokerZNode([end]), wall_clock_ms())

    async def _listen(self, broker_id: int) -> int:
        server = await asyncio.start_server(
            lambda reader, writer: self._serve(broker_id, reader, writer),
            HOST,
            0,
            limit=_BUFFER_BYTES,
        )
        return server.sockets[0].getsockname()[1]

    async def _serve(
        self, broker_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                request = await reader.readexactly(size)
                at_ns = time.time_ns()
                api, version, correlation_id, start = read_header(request)
                self._received.append(Received(at_ns, broker_id, api.name, version, size))
                if self._keep:
                    self._kept.append(Kept(at_ns, broker_id, api, request, start))
                writer.write(frame(answer(api, version, correlation_id, request, start)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def main() -> None:
    answer_with = open_answers()
    stubs = StubBrokers(*sys.argv[1:3], keep="keep" in sys.argv[3:])
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
