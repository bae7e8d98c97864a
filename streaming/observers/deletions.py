"""Watches the topics that are named under /admin/delete_topics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import EventAppender, event
from streaming.observers.ports import Topics
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.zk.multiread import read_many
from streaming.zk.znodes import DELETE_TOPICS_PATH, topic_deletion_path, topic_name, topic_path

logger = logging.getLogger(__name__)


class DeletionsObserver:
    """Appends each name that was not there at the last look, with the id of the topic it means.

    A name that went and came back (another czxid) is appended again. The names go when the topics
    are deleted, or when there is no such topic: that is decided from the log. One that goes while
    the topic that it means is there is appended as withdrawn; of a topic without an id nobody could
    tell which it meant. One that no topic may have is passed over, logged and counted as
    broken_admin_requests.
    """

    def __init__(
        self,
        tree: WatchedTree,
        log: EventAppender,
        topics: Topics,
        counters: Counters,
        names_counted: Callable[[int], None],
    ) -> None:
        """Start with no name seen. names_counted: told at each look how many names there are."""
        self._tree = tree
        self._log = log
        self._topics = topics
        self._counters = counters
        self._names_counted = names_counted
        self._seen: dict[str, int] = {}
        self._meant: dict[str, str | None] = {}  # ids of topics by the name that was appended
        self._withdrawn: dict[str, str | None] = {}  # and by one that went, while they live

    def look(self) -> None:
        """Read the names and append new ones, after the topics that they mean, and those that were
        withdrawn.
        """
        czxids = self._marks(self._tree.children(DELETE_TOPICS_PATH))
        new = [name for name, czxid in czxids.items() if self._seen.get(name) != czxid]
        fresh = [name for name in new if self._is_a_name(name)]
        if fresh:
            self._topics.look(Dirty(frozenset(topic_path(name) for name in fresh)))
            # A mark goes last: what was seen while it was there is the topic that it means.
            there = self._marks(fresh)
            fresh = [name for name in fresh if there.get(name) == czxids[name]]
        gone = self._living((self._withdrawn | self._meant).items(), but=czxids)
        meant = {name: id_ for name, id_ in self._meant.items() if name in czxids}
        meant |= {name: self._topics.topic_id(name) for name in fresh}
        records = [
            *_events(EventKind.TOPIC_DELETION_WITHDRAWN, sorted(gone.keys() & self._meant), gone),
            *_events(EventKind.TOPIC_DELETION_REQUESTED, fresh, meant),
        ]
        if records:
            self._log.append(records)
        self._seen, self._meant, self._withdrawn = czxids, meant, gone
        self._names_counted(len(czxids))

    def withdraw_again(self, topics: frozenset[str]) -> None:
        """Append again which names were withdrawn of topics that have just been read again: what
        said so may have met a topic that was not known.
        """
        there = self._living(self._withdrawn.items())
        records = _events(EventKind.TOPIC_DELETION_WITHDRAWN, sorted(there.keys() & topics), there)
        if records:
            self._log.append(records)

    def _marks(self, names: Sequence[str]) -> dict[str, int]:
        """Return the czxids of the names that are there: one that went asks for nothing, a topic of
        that name is a new one.
        """
        found = read_many(self._tree.session, [topic_deletion_path(name) for name in names])
        rows = zip(names, found.version.tolist(), found.czxid.tolist(), strict=True)
        return {name: czxid for name, version, czxid in rows if version >= 0}

    def _living(
        self, meant: Iterable[tuple[str, str | None]], but: Container[str] = ()
    ) -> dict[str, str | None]:
        """Return which names meant a topic that is known to be there still."""
        return {
            name: id_
            for name, id_ in meant
            if id_ is not None and name not in but and self._topics.topic_id(name) == id_
        }

    def _is_a_name(self, name: str) -> bool:
        try:
            topic_name(name)
        except ValueError as error:
            logger.warning("a child of %s is passed over: %s", DELETE_TOPICS_PATH, error)
            self._counters["broken_admin_requests"] += 1
            return False
        return True


def _events(
    kind: EventKind, names: Sequence[str], topic_ids: Mapping[str, str | None]
) -> list[NewRecord]:
    return [event(kind, {"topic": name, "topic_id": topic_ids[name]}, name) for name in names]
