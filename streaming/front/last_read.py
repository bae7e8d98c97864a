"""What is read from ZooKeeper each time that somebody asks for it, and kept for when it is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from streaming.security.identity import Undecided
from streaming.settings import Settings
from streaming.zk.errors import AuthenticationFailed, ZooKeeperError
from streaming.zk.opening import reader_of
from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState

logger = logging.getLogger(__name__)

_KEPT_MAX = 10_000
"""Of what was read; what nobody has asked for the longest time goes first."""

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class LastRead(Generic[K, V]):
    """Reads by a session of its own, which the first that asks opens, on a thread of its own. While
    ZooKeeper is away, what was read last is good; of what was not read it is not known then.
    """

    def __init__(
        self, settings: Settings, name: str, read: Callable[[ZkReader, K], V | None]
    ) -> None:
        """Take where ZooKeeper is, a name for the thread and the log, and how to read: `read` gets
        a session and what is asked for, returns None when there is none, and raises ZooKeeperError,
        or ValueError for what cannot be read. Nothing is opened yet.
        """
        self._settings = settings
        self._name = name
        self._read = read
        self._reading = ThreadPoolExecutor(1, name)
        self._reader: ZkReader | None = None
        self._known: dict[K, V] = {}

    async def find(self, key: K) -> V | None:
        """Return what is read of one, None when there is none; raises Undecided."""
        return await self._on_thread(lambda: self._find(key))

    async def reading(self, read: Callable[[ZkReader], T]) -> T:
        """Return what else is read by the same session; raises ZooKeeperError and what `read`
        does.
        """
        return await self._on_thread(lambda: self._with_session(read))

    async def close(self) -> None:
        """End the session; what is still asked for is not found."""
        self._reading.shutdown(wait=False, cancel_futures=True)
        if self._reader is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._reader.close)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    def _find(self, key: K) -> V | None:
        try:
            found = self._with_session(lambda session: self._read(session, key))
        except (ZooKeeperError, ValueError) as error:
            logger.warning("%s: %r cannot be read: %s", self._name, key, error)
            if key not in self._known:
                raise Undecided(f"{self._name}: {key!r}: {error}") from error
            return self._known[key]
        self._known.pop(key, None)
        if found is not None:
            self._known[key] = found  # behind all others
            if len(self._known) > _KEPT_MAX:
                del self._known[next(iter(self._known))]
        return found

    def _with_session(self, read: Callable[[ZkReader], T]) -> T:
        """Return what is read; a session that will never be there is given up: ZooKeeper did not
        take our name, or died then.
        """
        try:
            return read(self._session())
        except AuthenticationFailed:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            raise

    def _session(self) -> ZkReader:
        """Return the session; raises ZooKeeperError at once while it is not there."""
        if self._reader is None:
            reader = reader_of(self._settings)
            reader.connect(self._settings.zookeeper_connection_timeout_ms)
            self._reader = reader
        if self._reader.state is not SessionState.HELD:
            raise ZooKeeperError(f"no session with {self._reader.hosts}")
        return self._reader
