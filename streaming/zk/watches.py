"""Watches that stay: the present value after every change, and after every reconnection."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from streaming.zk.errors import ConnectionLost, SessionLost, ZooKeeperUnreachable
from streaming.zk.reader import Watch, ZkReader
from streaming.zk.types import SessionState, WatchEvent, ZNode

logger = logging.getLogger(__name__)

T = TypeVar("T")


class StandingWatch(Generic[T]):
    """Reads something with a one-shot watch, delivers it, and reads again whenever it may differ.

    ZooKeeper's watches fire once and kazoo drops them when the connection breaks; this one re-reads
    on each event and each time the session is HELD again. A value may be delivered again unchanged,
    and of changes in quick succession only the last may be seen: deliver compares with what it has.
    Deliveries come in order, on the session's callback thread.
    """

    def __init__(
        self, session: ZkReader, read: Callable[[Watch], T], deliver: Callable[[T], None]
    ) -> None:
        self._session = session
        self._read = read
        self._deliver = deliver
        self._stopped = False
        session.add_state_listener(self._on_state)
        session.run_soon(self._refresh)

    def stop(self) -> None:
        """Deliver nothing more."""
        if not self._stopped:
            self._stopped = True
            self._session.remove_state_listener(self._on_state)

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.HELD:
            self._session.run_soon(self._refresh)

    def _on_event(self, _: WatchEvent) -> None:
        self._refresh()

    def _refresh(self) -> None:
        if self._stopped:
            return
        try:
            value = self._read(self._on_event)
        except (ConnectionLost, SessionLost) as error:
            logger.info("a standing watch waits for the session to be held again: %s", error)
            return
        except ZooKeeperUnreachable:
            if self._session.state is SessionState.HELD:  # slow, not gone: nothing will call us
                self._session.run_soon(self._refresh)
            return
        self._deliver(value)


def watch_children(
    session: ZkReader, path: str, deliver: Callable[[list[str] | None], None]
) -> StandingWatch[list[str] | None]:
    """Deliver a znode's children (sorted; None: it is missing) now and after each change."""
    return StandingWatch(session, lambda watch: session.children(path, watch), deliver)


def watch_data(
    session: ZkReader, path: str, deliver: Callable[[ZNode | None], None]
) -> StandingWatch[ZNode | None]:
    """Deliver a znode (None: missing) now and after it is created, changed or deleted."""
    return StandingWatch(session, lambda watch: session.get(path, watch), deliver)
