"""ZooKeeper's tree as the observers see it: reads that leave a watch behind, and what fired."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.protocol.states import EventType

from streaming.zk.reader import ZkReader
from streaming.zk.types import SessionState, WatchEvent, ZNode
from streaming.zk.watches import read_and_watch


@dataclass(frozen=True, slots=True)
class Dirty:
    """What one look must read again.

    paths: znodes whose watch fired. reread_all: all watches were dropped with the connection.
    reappend: topics to be appended even if they are as they were appended last; unwritable: those
    of them that ZooKeeper takes no write of. reload: everything is to be appended, by new
    observers.
    """

    paths: frozenset[str] = frozenset()
    reread_all: bool = False
    reappend: frozenset[str] = frozenset()
    unwritable: frozenset[str] = frozenset()
    reload: bool = False

    def __contains__(self, path: str) -> bool:
        """Return whether a znode may differ."""
        return self.reread_all or path in self.paths

    def below(self, path: str) -> list[str]:
        """Return the names of marked children of a path, sorted."""
        prefix = f"{path}/"
        return sorted(p.removeprefix(prefix) for p in self.paths if p.startswith(prefix))

    @classmethod
    def union(cls, marks: Sequence[Dirty]) -> Dirty:
        """Return what all of them must read again."""
        return cls(
            frozenset().union(*(one.paths for one in marks)),
            any(one.reread_all for one in marks),
            frozenset().union(*(one.reappend for one in marks)),
            frozenset().union(*(one.unwritable for one in marks)),
            any(one.reload for one in marks),
        )


class DirtyPaths:
    """What is dirty since it was last taken; safe to use from any thread.

    Marks are put together when they are taken: there may be one for each znode of a cluster, and
    the thread that makes them serves the session.
    """

    def __init__(self, on_marked: Callable[[], None]) -> None:
        """Start clean; on_marked is called after each mark, on the marking thread."""
        self._lock = threading.Lock()
        self._marks: list[Dirty] = []
        self._on_marked = on_marked

    def __bool__(self) -> bool:
        """Return whether anything is marked."""
        return bool(self._marks)

    def mark(self, dirty: Dirty) -> None:
        """Mark more as dirty, or again what was taken but could not be read."""
        with self._lock:
            self._marks.append(dirty)
        self._on_marked()

    def drain(self) -> Dirty:
        """Return what is marked and start clean again."""
        with self._lock:
            marks, self._marks = self._marks, []
        return Dirty.union(marks)


class WatchedTree:
    """Reads of one session that mark their path dirty when what they read changes.

    One callback serves all watches, and kazoo keeps a set of them per path: reading a path twice
    leaves one watch.
    """

    def __init__(self, session: ZkReader, dirty: DirtyPaths) -> None:
        """Mark in `dirty` what changes, and everything whenever the connection came back."""
        self.session = session
        self._dirty = dirty
        self._watch = self._on_event
        self._raw_watch = self._on_raw_event
        session.add_state_listener(self._on_state)

    def children(self, path: str) -> list[str]:
        """List children, sorted, leaving a watch; a missing znode has none and is watched too."""
        return self.session.children(path, self._watch) or []

    def get(self, path: str) -> ZNode | None:
        """Read one znode, leaving a watch even when it is missing."""
        return self.session.get(path, self._watch)

    def get_many(self, paths: Sequence[str], *, await_missing: bool = False) -> list[ZNode | None]:
        """Read many znodes (None: it is missing), leaving a watch on each that exists, and with
        await_missing on each other one too.

        Watches that go with a broken connection are not set again: when it comes back all is marked
        dirty. Errors as `streaming.zk.multiread.read_many`.
        """
        return read_and_watch(self.session, paths, self._raw_watch, await_missing=await_missing)

    def _on_event(self, event: WatchEvent) -> None:
        self._dirty.mark(Dirty(frozenset([event.path])))

    def _on_raw_event(self, event: Any) -> None:
        if event.type != EventType.NONE:  # NONE: the connection broke, HELD will mark everything
            self._dirty.mark(Dirty(frozenset([event.path])))

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.HELD:
            self._dirty.mark(Dirty(reread_all=True))
