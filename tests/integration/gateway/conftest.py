"""A gateway in a thread of its own, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.unit.gateway.support import Rig, running

_START_S = 20.0


class GatewayThread:
    """Runs a gateway's event loop; every broker of its cluster is announced at its own address.

    So whichever node a client picks, the gateway answers.
    """

    def __init__(self) -> None:
        self.rig: Rig
        self._loop: asyncio.AbstractEventLoop
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(_START_S)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        async with running() as self.rig:
            port = self.rig.port()
            end = {"listener": "CLIENT", "host": "127.0.0.1", "port": port, "security_protocol": 0}
            updated = [
                {"id": broker, "epoch": 100 + broker, "rack": f"r{broker}", "endpoints": [end]}
                for broker in (1, 2, 3)
            ]
            self.rig.cluster.happen("broker_registrations_changed", "", {"updated": updated})
            self._ready.set()
            await self._stopped.wait()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.rig.port()}"

    def do(self, action: Callable[[Rig], None]) -> None:
        """Change something on the gateway's loop, and wait until it is done."""

        async def act() -> None:
            action(self.rig)

        asyncio.run_coroutine_threadsafe(act(), self._loop).result(_START_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_START_S)


@pytest.fixture
def gateway() -> Iterator[GatewayThread]:
    thread = GatewayThread()
    yield thread
    thread.stop()
