"""A TCP proxy that holds every chunk for a while, each way: a distant ZooKeeper.

A worker (tests.bench.worker): listen. Chunks keep their order and overlap, so only latency is
added, no limit of throughput.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading

from tests.bench.worker import open_answers, serve

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16


class DelayProxy:
    """Forwards connections to one loopback port; runs in a thread."""

    def __init__(self, port: int, delay_ms: float) -> None:
        self._port = port
        self._delay_s = delay_ms / 1000
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def listen(self) -> int:
        """Start and return the port to connect to."""
        starting = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._accept, HOST, 0), self._loop
        )
        return starting.result(10).sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(HOST, self._port)
        await asyncio.gather(self._forward(reader, back), self._forward(there, writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(_CHUNK_BYTES):
                self._loop.call_later(self._delay_s, writer.write, chunk)
        self._loop.call_later(self._delay_s, writer.close)


def main() -> None:
    answer_with = open_answers()
    proxy = DelayProxy(int(sys.argv[1]), float(sys.argv[2]))
    serve({"listen": proxy.listen}, answer_with)


if __name__ == "__main__":
    main()
