"""The access control lists that brokers keep in ZooKeeper, followed as they change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from streaming.observers.acl_lists import acl_lists
from streaming.security.acls import ANY, Acl, AclTable, Operation
from streaming.settings import Settings
from streaming.zk.errors import SessionLost, ZooKeeperError
from streaming.zk.multiread import read_many
from streaming.zk.opening import reader_of
from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState, WatchEvent
from streaming.zk.znodes.acls import ACL_CHANGES_PATHS, ACL_ROOT, parse_acls

logger = logging.getLogger(__name__)

_AGAIN_AFTER_S = 1.0
_LOOK_S = 10.0
_NOBODY = Acl("User:*", ANY, Operation.ALL, allowed=False)
"""In place of a list that cannot be read, which might deny something."""


def ignored_rights(session: ZkReader, settings: Settings) -> str | None:
    """Return what to tell when brokers seem to have an authorizer and this node has none."""
    if settings.authorizer_class_name or session.get(ACL_ROOT) is None:
        return None
    return (
        f"{ACL_ROOT} is in ZooKeeper, so brokers have an authorizer, or had one, and this node lets"
        " everybody who reaches it ask everything: set authorizer.class.name as brokers have it"
    )


class ZkAcls:
    """Tells of the access control lists, all of them again when one has changed: they are read by
    the thousand at once. While ZooKeeper is away, what was told last stays good, as with brokers.
    """

    def __init__(self, settings: Settings, tell: Callable[[AclTable], None]) -> None:
        """Take where ZooKeeper is, and what to tell, which is called on a thread of this one's."""
        self._settings = settings
        self._tell = tell
        self._look = threading.Event()
        self._look.set()
        self._unwatched = set(ACL_CHANGES_PATHS)
        self._reader: ZkReader | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._follow, name="acls", daemon=True)

    def start(self) -> None:
        """Start the thread, once; ZooKeeper may still be away."""
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """End the session; nothing is told any more."""
        self._stopping = True
        self._look.set()
        if self._thread.is_alive():
            self._thread.join(self._settings.zookeeper_session_timeout_ms / 1000)
        if self._reader is not None:
            self._reader.close()

    def _follow(self) -> None:
        while True:
            seen = self._look.wait(_LOOK_S)
            if seen:  # else it may be set by now
                self._look.clear()
            if self._stopping:
                return
            self._read_and_tell(seen=seen)

    def _read_and_tell(self, *, seen: bool) -> None:
        """Do that when a change was seen, or the session is over in which it would be."""
        try:
            over = self._session_is_over()
            if seen or over:
                table = self._read()
                if not self._stopping:
                    self._tell(table)
        except Exception as error:
            if self._stopping:
                return
            known = isinstance(error, ZooKeeperError)
            reason = None if known else error
            logger.warning("access control lists may be out of date: %s", error, exc_info=reason)
            self._look.wait(_AGAIN_AFTER_S)
            self._look.set()

    def _session_is_over(self) -> bool:
        """Return whether there is none that comes back, and give up the one that does not."""
        if self._reader is not None and self._reader.state is SessionState.LOST:
            self._reader.close()
            self._reader = None
        return self._reader is None

    def _session(self) -> ZkReader:
        if self._reader is None:
            reader = reader_of(self._settings)
            reader.connect(self._settings.zookeeper_connection_timeout_ms)
            if self._stopping:  # whoever stopped this does not wait so long
                reader.close()
                raise SessionLost("nobody wants to know any more")
            self._unwatched.update(ACL_CHANGES_PATHS)
            reader.add_state_listener(self._on_state)
            self._reader = reader
        return self._reader

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.HELD:  # watches are gone with the connection
            self._unwatched.update(ACL_CHANGES_PATHS)
            self._look.set()

    def _on_change(self, event: WatchEvent) -> None:
        self._unwatched.add(event.path)
        self._look.set()

    def _read(self) -> AclTable:
        session = self._session()
        for path in ACL_CHANGES_PATHS:
            if path in self._unwatched:
                self._unwatched.discard(path)  # before: it may fire at once
                try:
                    session.children(path, self._on_change)
                except Exception:
                    self._unwatched.add(path)
                    raise
        found = list(acl_lists(session))
        lists = read_many(session, [path for path, _ in found]).data
        return AclTable(
            {
                pattern: _parsed(path, data)
                for (path, pattern), data in zip(found, lists, strict=True)
                if data is not None
            }
        )


def _parsed(path: str, data: bytes) -> list[Acl]:
    try:
        return parse_acls(data)
    except ValueError as error:
        logger.warning("%s: %s; until it is mended, only super users may", path, error)
        return [_NOBODY]
