"""The answer to a request that is on its way, and kazoo's errors in our words."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from kazoo.exceptions import AuthFailedError, ConnectionLoss, SessionExpiredError, ZookeeperError
from kazoo.handlers.threading import KazooTimeoutError

from streaming.zk.errors import (
    AuthenticationFailed,
    ConnectionLost,
    NodeExists,
    NodeMissing,
    RequestFailed,
    SessionLost,
    VersionMismatch,
    ZkErrorCode,
    ZooKeeperUnreachable,
)
from streaming.zk.types import SessionState

T = TypeVar("T")

_FAILURES = {
    ZkErrorCode.NO_NODE: NodeMissing,
    ZkErrorCode.NODE_EXISTS: NodeExists,
    ZkErrorCode.BAD_VERSION: VersionMismatch,
}


class Session(Protocol):
    """What an answer needs to know of the session it comes in."""

    hosts: str

    @property
    def state(self) -> SessionState:
        """Whether the session is held."""

    @property
    def was_refused(self) -> bool:
        """Whether ZooKeeper refused the credentials."""


class Pending(Generic[T]):
    """The answer to a request that is on its way."""

    def __init__(self, session: Session, path: str, answer: Any) -> None:
        self._session = session
        self._path = path
        self._answer = answer

    def result(self, timeout_s: float) -> T:
        """Wait for the answer; raises the errors of streaming.zk.errors."""
        try:
            answer: T = self._answer.get(timeout=max(timeout_s, 0.0))
        except KazooTimeoutError:
            raise ZooKeeperUnreachable(self._session.hosts, int(timeout_s * 1000)) from None
        except (AuthFailedError, SessionExpiredError) as error:
            # A request that is sent while the server hangs up finds the connection closed.
            if isinstance(error, AuthFailedError) or self._session.was_refused:
                hosts = self._session.hosts
                refused = f"ZooKeeper at {hosts} refused the credentials"
                raise AuthenticationFailed(refused) from error
            raise SessionLost(f"session expired or closed at {self._path}") from error
        except ConnectionLoss as error:
            if self._session.state is SessionState.LOST:
                raise SessionLost(f"session over at {self._path}") from error
            raise ConnectionLost(f"connection lost at {self._path}") from error
        except ZookeeperError as error:
            raise _FAILURES.get(error.code, RequestFailed)(error.code, self._path) from error
        return answer
