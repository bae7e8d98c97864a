"""Configurations of users in ZooKeeper, changed for an administrator."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.front.short_session import changed
from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.opening import secret_acl
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
        acl = secret_acl(self._settings)
        return await changed(
            self._settings,
            f"the configuration of user {user!r}",
            lambda session: _alter(session, sanitized(user), changes, acl),
        )


def _alter(session: ZkSession, name: str, changes: Mapping[str, str | None], acl: Acl) -> bool:
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
