"""The topics of a live cluster: new ones and new partitions as inputs, assignments as results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass

from state.topic_partition import TopicPartition
from streaming.log.events import EventAppender
from streaming.observers.known_topics import KnownTopic, KnownTopics, observed, read_topic
from streaming.observers.overrides import Overrides, topic_overrides
from streaming.observers.states import StateTuple
from streaming.observers.tree import Dirty, DirtyPaths, WatchedTree
from streaming.process.counters import Counters
from streaming.shadow.leadership import assignment_of
from streaming.shadow.looks import SeenTopic
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    TOPICS_PATH,
    TopicZNode,
    partition_state_path,
    topic_path,
)

logger = logging.getLogger(__name__)

StatesSource = Callable[[list[TopicPartition]], Mapping[TopicPartition, StateTuple | None]]
"""Reads the states of partitions, as they are to be handed to our machine."""


@dataclass(slots=True)
class _Known(KnownTopic):
    partitions: frozenset[int]


class TopicsReader:
    """Appends topics and partitions that are new, without any state: what the live controller makes
    of them is a result. It stands where an active front has a TopicsObserver.
    """

    def __init__(
        self, tree: WatchedTree, dirty: DirtyPaths, inputs: EventAppender, counters: Counters
    ) -> None:
        """Start with no topic known; dirty is where the tree marks what changed."""
        self._tree = tree
        self._dirty = dirty
        self._inputs = inputs
        self._counters = counters
        self._known = KnownTopics[_Known]()
        self._seen: dict[str, SeenTopic | None] = {}
        self._fresh: list[str] = []

    def __contains__(self, name: str) -> bool:
        """Return whether a topic of that name was read."""
        return name in self._known

    def __len__(self) -> int:
        """Return the number of topics."""
        return len(self._known)

    def names(self) -> KeysView[str]:
        """Return the names of all topics."""
        return self._known.names()

    @property
    def observed_again(self) -> frozenset[str]:
        """None: nobody waits for a topic here."""
        return frozenset()

    def followed_up(self, topics: frozenset[str]) -> None:
        """Do nothing."""

    def topic_id(self, name: str) -> str | None:
        """Return the id that a topic was read with."""
        return self._known.topic_id(name)

    def czxid(self, name: str) -> int | None:
        """Return which topic of that name was read, by its znode's creation; None for none."""
        known = self._known.get(name)
        return None if known is None else known.czxid

    def drain_seen(self) -> dict[str, SeenTopic | None]:
        """Return the topics that differ since this was asked last; None: gone."""
        seen, self._seen = self._seen, {}
        return seen

    def drain_fresh(self) -> list[str]:
        """Return the state znodes that nobody watches yet."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions, by topic and number."""
        return [
            (name, number)
            for name, known in sorted(self._known.items())
            for number in sorted(known.partitions)
        ]

    def load(self, states: StatesSource) -> None:
        """Read all topics, then their states, and append them."""
        read = self._read(self._tree.children(TOPICS_PATH))
        for name, znode, topic, own in read:
            self._know(name, znode, topic, own)
        self._fresh.clear()  # they are read now
        held = states(self.partitions())
        for name, znode, topic, own in read:
            of_topic = [held.get((name, number)) for number in topic.replicas]
            self._inputs.append([observed(name, topic, znode.version, own, of_topic)])

    def look(self, dirty: Dirty) -> None:
        """Read what may differ; new topics and partitions are appended."""
        changed = [name for name in dirty.below(TOPICS_PATH) if "/" not in name]
        if TOPICS_PATH in dirty:
            names = self._tree.children(TOPICS_PATH)
            for gone in sorted(self._known.names() - set(names)):
                self._forget(gone)
            new = [name for name in names if dirty.reread_all or name not in self._known]
            changed = sorted({*changed, *new} & set(names))
        for name, znode, topic, own in self._read(changed):
            self._take(name, znode, topic, own)

    def configs_changed(self, topics: Iterable[str]) -> None:
        """Read the configuration of topics again and append overrides that differ."""
        records = self._known.config_changes(self._tree.session, self._counters, topics)
        if records:
            self._inputs.append(records)

    def _take(self, name: str, znode: ZNode, topic: TopicZNode, own: Overrides) -> None:
        known = self._known.get(name)
        if known is not None and known.czxid != znode.czxid:
            # Deleted and created again: first our machine hears of the end, at the next look of
            # the beginning.
            self._forget(name)
            self._dirty.mark(Dirty(frozenset([topic_path(name)])))
            return
        if known is not None and known.version == znode.version:
            return
        grown = known is None or not topic.replicas.keys() <= known.partitions
        self._know(name, znode, topic, own)
        if grown:
            none = [None] * len(topic.replicas)
            self._inputs.append([observed(name, topic, znode.version, own, none)])

    def _know(self, name: str, znode: ZNode, topic: TopicZNode, own: Overrides) -> None:
        before = self._known.get(name)
        numbers = frozenset(topic.replicas)
        new = numbers if before is None else numbers - before.partitions
        self._fresh += [partition_state_path(name, number) for number in sorted(new)]
        known = _Known(
            znode.czxid, znode.version, own, topic.topic_id, len(numbers), partitions=numbers
        )
        self._known.know(name, known)
        assignment = assignment_of(topic.replicas, topic.adding, topic.removing)
        self._seen[name] = SeenTopic(topic.topic_id, assignment)

    def _forget(self, name: str) -> None:
        self._known.forget(name)
        self._seen[name] = None

    def _read(self, names: Sequence[str]) -> list[tuple[str, ZNode, TopicZNode, Overrides]]:
        found = []
        znodes = self._tree.get_many([topic_path(name) for name in names])
        for name, znode, own in zip(names, znodes, self._overrides(names), strict=True):
            if znode is None:
                if name in self._known:
                    self._forget(name)
                continue
            try:
                found.append((name, znode, read_topic(name, znode), own))
            except ValueError as error:
                logger.warning("topic %s is passed over: %s", name, error)
                self._counters["broken_topic_znodes"] += 1
        return found

    def _overrides(self, names: Sequence[str]) -> list[Overrides]:
        """Read what new topics have of their own; of others `configs_changed` says what differs."""
        known = {name: one.own for name in names if (one := self._known.get(name)) is not None}
        new = [name for name in names if name not in known]
        read = topic_overrides(self._tree.session, self._counters, new)
        own = {**known, **dict(zip(new, read, strict=True))}
        return [own[name] for name in names]
