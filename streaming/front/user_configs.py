"""Configurations of users in ZooKeeper, changed for an administrator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.errors import NodeExists, VersionMismatch, ZooKeeperError
from streaming.zk.opening import secret_acl, session_of
from streaming.zk.ops import Acl
from streaming.zk.znodes import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES_PATH,
    config_bytes,
    config_change_bytes,
    entity_config_path,
    parse_config,
)
from streaming.zk.znodes.paths import sanitized

USERS = "users"
_ATTEMPTS = 5


class ZkUserConfigs:
    """The gateway's UserConfigs, each change in a short session of its own: they are rare."""

    def __init__(self, settings: Settings) -> None:
        """Take where ZooKeeper is; nothing is opened yet."""
        self._settings = settings

    async def alter(self, user: str, changes: Mapping[str, str | None]) -> bool:
        """Set configs of a user, or remove those that are None; False, and nothing is changed, when
        one to be removed is not there.

        Brokers are notified as of any configuration. Raises OSError when it cannot be done.
        """
        return await asyncio.get_running_loop().run_in_executor(None, self._alter, user, changes)

    def _alter(self, user: str, changes: Mapping[str, str | None]) -> bool:
        settings = self._settings
        session, acl = session_of(settings), secret_acl(settings)
        try:
            session.connect(settings.zookeeper_connection_timeout_ms)
            for _ in range(_ATTEMPTS):
                try:
                    return _try_to_alter(session, sanitized(user), changes, acl)
                except (NodeExists, VersionMismatch):
                    continue  # somebody else was quicker
            raise OSError(f"the configuration of user {user!r} changes too often")
        except (ZooKeeperError, ValueError) as error:
            raise OSError(f"the configuration of user {user!r} was not changed: {error}") from error
        finally:
            session.close()


def _try_to_alter(
    session: ZkSession, name: str, changes: Mapping[str, str | None], acl: Acl
) -> bool:
    path = entity_config_path(USERS, name)
    znode = session.get(path)
    config = {} if znode is None else parse_config(znode.data)
    for key, value in changes.items():
        if value is not None:
            config[key] = value
        elif config.pop(key, None) is None:
            return False
    if znode is None:
        session.ensure_path(path.rpartition("/")[0], acl)
        session.create(path, config_bytes(config), acl=acl)
    else:
        session.set(path, config_bytes(config), znode.version)
    session.ensure_path(CONFIG_CHANGES_PATH)
    session.create_sequential(
        f"{CONFIG_CHANGES_PATH}/{CONFIG_CHANGE_PREFIX}", config_change_bytes(f"{USERS}/{name}")
    )
    return True
