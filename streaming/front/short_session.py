"""Changes of ZooKeeper, each in a short session of its own: they are rare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.errors import NodeExists, VersionMismatch, ZooKeeperError
from streaming.zk.opening import session_of

T = TypeVar("T")

_ATTEMPTS = 5


async def changed(settings: Settings, what: str, change: Callable[[ZkSession], T]) -> T:
    """Return what a change in a session returns, which is tried again when somebody else was
    quicker (NodeExists, VersionMismatch).

    what: names it in messages. Raises OSError when it cannot be done (ZooKeeperError, ValueError),
    and what else the change raises.
    """
    return await asyncio.get_running_loop().run_in_executor(None, _change, settings, what, change)


def _change(settings: Settings, what: str, change: Callable[[ZkSession], T]) -> T:
    session = session_of(settings)
    try:
        session.connect(settings.zookeeper_connection_timeout_ms)
        for _ in range(_ATTEMPTS):
            try:
                return change(session)
            except (NodeExists, VersionMismatch):
                continue
        raise OSError(f"{what} changes too often")
    except (ZooKeeperError, ValueError) as error:
        raise OSError(f"{what} was not changed: {error}") from error
    finally:
        session.close()
