"""Sessions with ZooKeeper as the settings want them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from streaming.security.credentials import zookeeper_credentials
from streaming.security.tls import zookeeper_context
from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.ops import CREATORS_ACL, OPEN_ACL, SECRET_ACL, Acl
from streaming.zk.reader import StateListener, ZkReader


def reader_of(settings: Settings) -> ZkReader:
    """Return a session that only reads, not connected yet; raises ConfigurationError when a file
    that the settings name cannot be used.
    """
    return ZkReader(settings.zookeeper_connect, **_options(settings))


def session_of(settings: Settings, on_state: StateListener | None = None) -> ZkSession:
    """Return a session that writes too, as `reader_of`; on_state hears of what becomes of it."""
    return ZkSession(settings.zookeeper_connect, on_state=on_state, **_options(settings))


def secret_acl(settings: Settings) -> Acl:
    """Return who may read and write what others should not see, such as passwords."""
    return SECRET_ACL if settings.zookeeper_set_acl else OPEN_ACL


@functools.cache  # a JAAS file is read at the start: one that is being written may be half there
def _options(settings: Settings) -> Mapping[str, Any]:
    return {
        "sasl": zookeeper_credentials(settings),
        "session_timeout_ms": settings.zookeeper_session_timeout_ms,
        "tls": zookeeper_context(settings),
        "default_acl": CREATORS_ACL if settings.zookeeper_set_acl else OPEN_ACL,
    }
