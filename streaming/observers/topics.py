"""Watches the topics: new ones, gone ones, and those whose assignment or id changed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice

from streaming.log.api import NewRecord
from streaming.log.events import EventAppender
from streaming.mint_topic_id import mint_topic_id
from streaming.observers.known_topics import (
    KnownTopic,
    KnownTopics,
    observed,
    read_topic,
    removed,
)
from streaming.observers.overrides import topic_overrides
from streaming.observers.states import read_states
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.zk.types import ZNode
from streaming.zk.znodes import TOPICS_PATH, TopicZNode, topic_path

logger = logging.getLogger(__name__)

TOPICS_PER_APPEND = 500
_APPENDS_IN_FLIGHT = 4


class TopicsObserver:
    """Appends the difference between /brokers/topics and what it appended last.

    Each topic's znode has a watch of its own. A topic that was deleted and created again between
    two looks (another czxid) is removed and observed. One whose znode cannot be read, or that has a
    name that no topic may have, is logged, counted, and left as it was until the znode changes
    again. One that is to be appended again stays so until it can be read, or is gone: whoever asked
    for it waits for that.
    """

    def __init__(
        self,
        tree: WatchedTree,
        log: EventAppender,
        counters: Counters,
        *,
        check: Callable[[], None],
        mint_topic_ids: bool,
    ) -> None:
        """Start with no topic known; check is called between the groups of a long look. With
        mint_topic_ids topics that have no id are observed with one to get.
        """
        self._tree = tree
        self._log = log
        self._counters = counters
        self._check = check
        self._mint_topic_ids = mint_topic_ids
        self._known = KnownTopics[KnownTopic]()
        self._listed: frozenset[str] = frozenset()
        self._broken: dict[str, tuple[int, int]] = {}  # czxid and version that cannot be read
        self._owed: set[str] = set()  # to be appended again, and not readable so far
        self._observed_again: set[str] = set()

    def __len__(self) -> int:
        """Return the number of topics appended as observed."""
        return len(self._known)

    def __contains__(self, name: str) -> bool:
        """Return whether a topic of that name was appended as observed."""
        return name in self._known

    def is_listed(self, name: str) -> bool:
        """Return whether a topic was there when all were last listed, readable or not."""
        return name in self._listed

    def topic_id(self, name: str) -> str | None:
        """Return the id that a topic was appended with; None when it has none or is not known."""
        return self._known.topic_id(name)

    def partition_count(self, name: str) -> int:
        """Return how many partitions a topic was appended with, 0 for one that is not known."""
        known = self._known.get(name)
        return 0 if known is None else known.partition_count

    def min_insync_replicas(self, name: str) -> int | None:
        """Return a topic's own min.insync.replicas, None when it has none or is not known."""
        known = self._known.get(name)
        return None if known is None else known.own.min_insync

    @property
    def observed_again(self) -> frozenset[str]:
        """As Topics says."""
        return frozenset(self._observed_again)

    def followed_up(self, topics: frozenset[str]) -> None:
        """As Topics says."""
        self._observed_again -= topics

    def look(self, dirty: Dirty) -> None:
        """Read what may differ, and append the topics that do; returns when all is durable."""
        dirty = replace(dirty, reappend=dirty.reappend | self._owed)
        if TOPICS_PATH not in dirty:
            self._observe(sorted({*dirty.below(TOPICS_PATH), *dirty.reappend}), dirty)
            return
        listed = self._tree.children(TOPICS_PATH)
        self._listed = frozenset(listed)
        gone = self._forget((self._known.names() | dirty.reappend) - self._listed, dirty.reappend)
        if gone:
            self._log.append(gone)
        changed = {*dirty.below(TOPICS_PATH), *dirty.reappend}
        fresh = [n for n in listed if dirty.reread_all or n in changed or n not in self._known]
        self._observe(fresh, dirty)

    def configs_changed(self, topics: Iterable[str]) -> None:
        """Read the configuration of topics again and append overrides that differ."""
        records = self._known.config_changes(self._tree.session, self._counters, topics)
        if records:
            self._log.append(records)

    def _observe(self, names: Sequence[str], dirty: Dirty) -> None:
        appends: deque[Future[range]] = deque()
        for start in range(0, len(names), TOPICS_PER_APPEND):
            self._check()
            records = list(self._changes(names[start : start + TOPICS_PER_APPEND], dirty))
            if records:
                appends.append(self._log.append_async(records))
            while len(appends) > _APPENDS_IN_FLIGHT:
                appends.popleft().result()
        for append in appends:
            append.result()

    def _forget(self, names: Iterable[str], reappend: frozenset[str]) -> list[NewRecord]:
        """Return that topics are gone which were appended. So are those that were to be appended
        again: until one of both is, readers see them as they were.
        """
        gone = sorted((self._known.names() | reappend) & set(names))
        self._owed.difference_update(gone)
        return [removed(name, self._known.forget(name)) for name in gone]

    def _changes(self, names: Sequence[str], dirty: Dirty) -> Iterator[NewRecord]:
        znodes = self._tree.get_many([topic_path(name) for name in names])
        changed = [
            (name, znode, topic)
            for name, znode in zip(names, znodes, strict=True)
            if znode is not None and self._differs(name, znode, dirty.reappend)
            if (topic := self._parsed(name, znode)) is not None
        ]
        overridden = topic_overrides(
            self._tree.session, self._counters, [name for name, _, _ in changed]
        )
        partitions = [(name, p) for name, _, topic in changed for p in topic.replicas]
        states = iter(read_states(self._tree.session, partitions, self._counters))
        # All is read: from here on nothing can fail between what is yielded and what is known.
        # A topic that is gone has no watch any more; forgotten, it is read when it is listed again.
        self._owed |= dirty.reappend.intersection(names)
        missing = [name for name, znode in zip(names, znodes, strict=True) if znode is None]
        yield from self._forget(missing, dirty.reappend)
        for (name, znode, topic), own in zip(changed, overridden, strict=True):
            known = self._known.get(name)
            if known is not None and known.czxid != znode.czxid and name not in dirty.reappend:
                yield removed(name, known)
            self._owed.discard(name)
            self._observed_again.update(dirty.reappend & {name})
            count = len(topic.replicas)
            read = KnownTopic(znode.czxid, znode.version, own, topic.topic_id, count)
            self._known.know(name, read)
            of_topic = list(islice(states, count))
            fixed = name in dirty.unwritable
            mint = self._mint_topic_ids and not topic.topic_id and not fixed
            yield observed(
                name,
                topic,
                znode.version,
                own,
                of_topic,
                new_topic_id=mint_topic_id() if mint else None,
                observed_again=name in dirty.reappend,
                unwritable=fixed,
            )

    def _differs(self, name: str, znode: ZNode, reappend: frozenset[str]) -> bool:
        identity = (znode.czxid, znode.version)
        known = None if name in reappend else self._known.get(name)
        appended = known is not None and (known.czxid, known.version) == identity
        return not appended and self._broken.get(name) != identity

    def _parsed(self, name: str, znode: ZNode) -> TopicZNode | None:
        try:
            return read_topic(name, znode)
        except ValueError as error:
            logger.warning("topic %s is passed over: %s", name, error)
            self._counters["broken_topic_znodes"] += 1
            self._broken[name] = (znode.czxid, znode.version)
            return None
