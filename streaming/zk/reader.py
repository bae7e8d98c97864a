"""The typed door to kazoo: one ZooKeeper session that only reads.

What could change ZooKeeper is not refused by good manners: the client under it sends nothing but
reads (`streaming.zk.kazoo_client`). `streaming.zk.client` adds the writes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from kazoo.protocol.states import Callback, EventType, KazooState, KeeperState
from kazoo.security import ACL, Id

from streaming.keyfiles.renewed import RenewedContext
from streaming.security.ourselves import Credentials
from streaming.zk.errors import (
    AuthenticationFailed,
    ConnectionLost,
    NodeMissing,
    SessionLost,
    ZooKeeperError,
    ZooKeeperUnreachable,
)
from streaming.zk.kazoo_client import ImpatientClient, ImpatientHandler, ReadingClient
from streaming.zk.ops import OPEN_ACL, Acl
from streaming.zk.pending import Pending
from streaming.zk.sasl import sasl_options
from streaming.zk.types import SessionState, WatchEvent, WatchKind, ZNode

logger = logging.getLogger(__name__)

_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0, "max_jitter": 0.2}

Watch = Callable[[WatchEvent], None]
RawWatch = Callable[[Any], None]
"""A watch as kazoo calls it; an event of type NONE says that the connection broke."""
StateListener = Callable[[SessionState], None]


def kazoo_acl(acl: Acl) -> list[ACL]:
    """Return an access control list as kazoo takes it."""
    return [ACL(bits, Id(scheme, name)) for bits, scheme, name in acl]


class ZkReader:
    """One ZooKeeper session that cannot write.

    kazoo re-connects by itself: within the session timeout the same session goes IN_DOUBT -> HELD;
    later it goes LOST -> HELD as a new session with another session_id, in which none of the old
    ephemeral znodes exist. Every one-shot watch is dropped when the connection breaks, so watchers
    must read again when HELD comes back (streaming.observers.tree does).

    State listeners run on the connection's thread and must not block nor call the session; watch
    callbacks run on one thread of their own, in order, and may.
    """

    client: type[ImpatientClient] = ReadingClient

    def __init__(
        self,
        hosts: str,
        session_timeout_ms: int = 18_000,
        *,
        on_state: StateListener | None = None,
        auth_data: Sequence[tuple[str, str]] = (),
        default_acl: Acl = OPEN_ACL,
        tls: RenewedContext | None = None,
        sasl: Credentials | None = None,
    ) -> None:
        """Take where ZooKeeper is, what connections are secured with, and who we are there."""
        self.hosts = hosts
        self.session_timeout_ms = session_timeout_ms
        self.default_acl = default_acl
        self._listeners: list[StateListener] = [] if on_state is None else [on_state]
        self._state = SessionState.LOST
        self._session_id: int | None = None
        self._held = threading.Event()
        self._closed = False
        self._kazoo = self.client(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            handler=ImpatientHandler(hosts, session_timeout_ms, tls),
            auth_data=list(auth_data),
            sasl_options=None if sasl is None else sasl_options(sasl),
            default_acl=kazoo_acl(default_acl),
            connection_retry=_RECONNECT,
            logger=logger,
        )
        self._kazoo.add_listener(self._on_kazoo_state)

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def session_id(self) -> int | None:
        """The id that ephemeral_owner shows for our znodes; None while LOST."""
        return self._session_id

    @property
    def lacks_multi_read(self) -> bool:
        """Whether one of the servers does not know multiRead, which came with ZooKeeper 3.6."""
        return bool(self._kazoo.lacks_multi_read)

    @lacks_multi_read.setter
    def lacks_multi_read(self, lacks: bool) -> None:
        self._kazoo.lacks_multi_read = lacks

    @property
    def was_refused(self) -> bool:
        """Whether ZooKeeper refused the credentials; that is for good."""
        return bool(self._kazoo.client_state == KeeperState.AUTH_FAILED)

    @property
    def chroot(self) -> str:
        chroot: str = self._kazoo.chroot
        return chroot

    def connect(self, timeout_ms: int = 15_000) -> None:
        """Open the session.

        Raises ZooKeeperUnreachable after timeout_ms of trying, AuthenticationFailed; errors of
        reading when the connection does not last.
        """
        self._kazoo.start_async()
        if not self._held.wait(timeout_ms / 1000):
            refused = self.was_refused
            self.close()
            if refused:
                raise AuthenticationFailed(f"ZooKeeper at {self.hosts} refused the credentials")
            raise ZooKeeperUnreachable(self.hosts, timeout_ms)
        try:
            # An answer: the first server of a session may be one that hangs up once.
            self._read("/", lambda: self._kazoo.exists_async("/"))
        except ZooKeeperError:
            self.close()
            raise

    def close(self) -> None:
        """End the session: its ephemeral znodes go at once. Listeners hear nothing of it."""
        self._closed = True
        self._held.clear()
        self._state, self._session_id = SessionState.LOST, None
        self._kazoo.stop()
        self._kazoo.close()

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_state_listener(self, listener: StateListener) -> None:
        self._listeners.append(listener)

    def wait_until_held(self, timeout_s: float) -> None:
        """Wait for the connection to come back; raises ZooKeeperUnreachable and SessionLost."""
        if not self._held.wait(max(timeout_s, 0.0)):
            if self._state is SessionState.LOST:
                raise SessionLost(f"the session with {self.hosts} is over")
            raise ZooKeeperUnreachable(self.hosts, int(timeout_s * 1000))

    def get(self, path: str, watch: Watch | None = None) -> ZNode | None:
        """Read a znode; None when it is missing. A watch then waits for its creation."""
        while True:
            try:
                data, stat = self._read(
                    path, lambda: self._kazoo.get_async(path, watch=self._guarded(watch))
                )
            except NodeMissing:
                if watch is None or not self._exists(path, watch):
                    return None
                continue  # created between the two reads
            return ZNode(
                data, stat.version, stat.czxid, stat.mzxid, stat.mtime, stat.ephemeralOwner
            )

    def children(self, path: str, watch: Watch | None = None) -> list[str] | None:
        """List a znode's children, sorted; None when it is missing. A watch then waits for it."""
        while True:
            try:
                names: list[str] = self._read(
                    path, lambda: self._kazoo.get_children_async(path, watch=self._guarded(watch))
                )
            except NodeMissing:
                if watch is None or not self._exists(path, watch):
                    return None
                continue  # created between the two reads
            return sorted(names)

    def submit(self, request: Any, path: str) -> Pending[Any]:
        """Send a request object as kazoo's connection knows them (type, serialize, deserialize)."""
        return Pending(self, path, self._sent(request))

    def _sent(self, request: Any) -> Any:
        answer = self._kazoo.handler.async_result()
        self._kazoo._call(request, answer)
        return answer

    def expect_data_events(self, paths: Sequence[str], watch: RawWatch) -> None:
        """Have a watch called when an event comes for the data of znodes; paths have the chroot.

        Only for the connection's thread: kazoo keeps the watches for it, without a lock.
        """
        for path in paths:
            self._kazoo._data_watchers[path].add(watch)

    def await_watches(self) -> None:
        """Wait until watches were called for all that the server had told of when it answered last.

        Answers reach whoever waits for them from the connection's thread: they may be ahead of
        events that came before them. Not from a watch. Raises ZooKeeperUnreachable.
        """
        called = threading.Event()
        self._kazoo.handler.dispatch_callback(Callback("watch", called.set, ()))
        if not called.wait(self.session_timeout_ms / 1000):
            raise ZooKeeperUnreachable(self.hosts, self.session_timeout_ms)

    def sync(self) -> None:
        """Make sure that later reads see everything that was committed before."""
        self._read("/", lambda: self._kazoo.sync_async("/"))

    def _exists(self, path: str, watch: Watch) -> bool:
        stat = self._read(path, lambda: self._kazoo.exists_async(path, watch=self._guarded(watch)))
        return stat is not None

    def _read(self, path: str, send: Callable[[], Any]) -> Any:
        """Send something that may be sent twice, until answered or the session timeout is over."""
        deadline = time.monotonic() + self.session_timeout_ms / 1000
        while True:
            try:
                return Pending[Any](self, path, send()).result(deadline - time.monotonic())
            except ConnectionLost:
                self.wait_until_held(deadline - time.monotonic())

    def _guarded(self, watch: Watch | None) -> Callable[[Any], None] | None:
        if watch is None:
            return None

        def fire(event: Any) -> None:
            if event.type != EventType.NONE:  # NONE: the connection broke and dropped the watch
                self._quietly(lambda: watch(WatchEvent(WatchKind(event.type), event.path)))

        return fire

    def _quietly(self, work: Callable[[], None]) -> None:
        if self._closed:
            return
        try:
            work()
        except ZooKeeperError as error:
            logger.info("a watch callback was cut short: %s", error)

    def _on_kazoo_state(self, kazoo_state: str) -> None:
        if self._closed:
            return
        state = {
            KazooState.CONNECTED: SessionState.HELD,
            KazooState.SUSPENDED: SessionState.IN_DOUBT,
        }.get(kazoo_state, SessionState.LOST)
        self._state = state
        if state is SessionState.HELD:
            self._session_id = self._kazoo.client_id[0]
            self._held.set()
        else:
            self._held.clear()
            if state is SessionState.LOST:
                self._session_id = None
        for listener in list(self._listeners):
            listener(state)
