"""What is known of users for SCRAM, as brokers keep it in ZooKeeper (KIP-84)."""

from __future__ import annotations

from streaming.front.last_read import LastRead
from streaming.front.user_configs import USERS
from streaming.security.scram import ScramCredential, parse_credential
from streaming.settings import Settings
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import entity_config_path, parse_config
from streaming.zk.znodes.paths import sanitized


class ZkScramCredentials:
    """Reads a user's credential each time that it logs in. While ZooKeeper is away, what was read
    last is good; brokers keep it in memory too, and a new password needs ZooKeeper.
    """

    def __init__(self, settings: Settings) -> None:
        """Take where ZooKeeper is; nothing is opened yet."""
        self._read = LastRead(settings, "scram-credentials", _credential)

    async def find(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's credential for a mechanism, None when there is none; raises Undecided."""
        return await self._read.find((mechanism, user))

    async def close(self) -> None:
        """End the session; who is still asked about is not found."""
        await self._read.close()


def _credential(session: ZkReader, key: tuple[str, str]) -> ScramCredential | None:
    mechanism, user = key
    znode = session.get(entity_config_path(USERS, sanitized(user)))
    text = None if znode is None else parse_config(znode.data).get(mechanism)
    return None if text is None else parse_credential(text)
