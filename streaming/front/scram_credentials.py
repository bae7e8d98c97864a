"""What is known of users for SCRAM, as brokers keep it in ZooKeeper (KIP-84)."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from streaming.front.user_configs import USERS, sanitized
from streaming.security.sasl_server import Undecided
from streaming.security.scram import ScramCredential, parse_credential
from streaming.settings import Settings
from streaming.zk.errors import AuthenticationFailed, ZooKeeperError
from streaming.zk.opening import reader_of
from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState
from streaming.zk.znodes import entity_config_path, parse_config

logger = logging.getLogger(__name__)


class ZkScramCredentials:
    """Reads a user's credential each time that it logs in, in a session of its own which the first
    of them opens. While ZooKeeper is away, what was read last is good; brokers keep it in memory
    too, and a new password needs ZooKeeper. Of whom nothing was read it is not known then.
    """

    def __init__(self, settings: Settings) -> None:
        """Take where ZooKeeper is; nothing is opened yet."""
        self._settings = settings
        self._reading = ThreadPoolExecutor(1, "scram-credentials")
        self._reader: ZkReader | None = None
        self._known: dict[tuple[str, str], ScramCredential] = {}

    async def find(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential for a mechanism, None when there is none; raises Undecided."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, self._find, mechanism, user)

    async def close(self) -> None:
        """End the session; who is still asked about is not found."""
        self._reading.shutdown(wait=False, cancel_futures=True)
        if self._reader is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._reader.close)

    def _find(self, mechanism: str, user: str) -> ScramCredential | None:
        try:
            found = self._read(mechanism, user)
        except (ZooKeeperError, ValueError) as error:
            logger.warning("credential of user %r cannot be read: %s", user, error)
            if isinstance(error, AuthenticationFailed):
                self._give_up()
            if (mechanism, user) not in self._known:
                raise Undecided(f"credential of user {user!r}: {error}") from error
            return self._known[mechanism, user]
        if found is None:
            self._known.pop((mechanism, user), None)
        else:
            self._known[mechanism, user] = found
        return found

    def _read(self, mechanism: str, user: str) -> ScramCredential | None:
        znode = self._session().get(entity_config_path(USERS, sanitized(user)))
        text = None if znode is None else parse_config(znode.data).get(mechanism)
        return None if text is None else parse_credential(text)

    def _give_up(self) -> None:
        """End a session that will never be there: ZooKeeper did not take our name, or died then."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _session(self) -> ZkReader:
        """Return the session; raises ZooKeeperError at once while it is not there."""
        if self._reader is None:
            reader = reader_of(self._settings)
            reader.connect(self._settings.zookeeper_connection_timeout_ms)
            self._reader = reader
        if self._reader.state is not SessionState.HELD:
            raise ZooKeeperError(f"no session with {self._reader.hosts}")
        return self._reader
