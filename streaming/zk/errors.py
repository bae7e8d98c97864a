"""What can go wrong with ZooKeeper, in the words of this project."""

from __future__ import annotations

from enum import IntEnum


class ZkErrorCode(IntEnum):
    """ZooKeeper's wire error codes that our code tells apart (KeeperException.Code)."""

    ROLLED_BACK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114


class ZooKeeperError(Exception):
    """Any failure of a ZooKeeper operation."""


class ZooKeeperUnreachable(ZooKeeperError):
    """No server answered in time; whether a write took effect is not known."""

    def __init__(self, hosts: str, waited_ms: int) -> None:
        super().__init__(f"ZooKeeper at {hosts} did not answer within {waited_ms} ms")
        self.hosts = hosts
        self.waited_ms = waited_ms


class ConnectionLost(ZooKeeperError):
    """The connection broke during one operation; whether it took effect is not known."""


class SessionLost(ZooKeeperError):
    """The session is over: its ephemeral znodes are gone, or may be, and so may be our role."""


class AuthenticationFailed(ZooKeeperError):
    """ZooKeeper refused the credentials."""


class WriteRefused(ZooKeeperError):
    """A session that only reads was asked to write: nothing was sent."""


class RequestFailed(ZooKeeperError):
    """ZooKeeper answered a request with an error."""

    def __init__(self, code: int, path: str) -> None:
        name = ZkErrorCode(code).name if code in set(ZkErrorCode) else str(code)
        super().__init__(f"ZooKeeper answered {name} for {path}")
        self.code = code
        self.path = path


class NodeMissing(RequestFailed):
    """The znode, or the parent of the one to be created, does not exist."""


class NodeExists(RequestFailed):
    """The znode to be created exists."""


class VersionMismatch(RequestFailed):
    """The znode's version is not the expected one."""
