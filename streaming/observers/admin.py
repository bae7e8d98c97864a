"""Watches the requests that tools leave under /admin."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from state.event_kinds import EventKind
from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH, ElectionType
from state.topic_partition import TopicPartition
from streaming.log.api import NewRecord
from streaming.log.events import EventAppender, event
from streaming.observers.ports import Topics
from streaming.observers.tree import Dirty, WatchedTree
from streaming.process.counters import Counters
from streaming.zk.types import ZNode
from streaming.zk.znodes import topic_path
from streaming.zk.znodes.admin import parse_preferred_election, parse_reassignment

logger = logging.getLogger(__name__)


class AdminObserver:
    """Appends what a request asks for, topic by topic.

    For elections it then appends that this was all, which lets the cluster machine delete the
    znode. Reassignments are taken out of theirs one by one as they end. A request that cannot be
    read, or is empty, asks for nothing: it is done with at once; what cannot be read is logged and
    counted as broken_admin_requests. Of reassignments only the creation is followed, as in Kafka:
    what is written into them later is mostly our own. What they still ask of a topic that is
    decided about again is asked again with it: what was made of it is forgotten.
    """

    def __init__(
        self, tree: WatchedTree, log: EventAppender, topics: Topics, counters: Counters
    ) -> None:
        """Start with no request seen."""
        self._tree = tree
        self._log = log
        self._topics = topics
        self._counters = counters
        self._seen: dict[str, tuple[int, int | None]] = {}  # czxid, version

    def look(self, dirty: Dirty) -> None:
        """Read the requests that may be new and append them; returns when all is durable."""
        if PREFERRED_ELECTION_PATH in dirty:
            self._look_at(PREFERRED_ELECTION_PATH, elections)
        if REASSIGN_PARTITIONS_PATH in dirty:
            self._look_at(REASSIGN_PARTITIONS_PATH, reassignments)

    def _look_at(self, path: str, read: Callable[[bytes], list[NewRecord]]) -> None:
        znode = self._tree.get(path)
        if znode is None or self._seen.get(path) in ((znode.czxid, None), _identity(znode)):
            return
        try:
            records = read(znode.data)
        except ValueError as error:
            logger.warning("%s asks for nothing: %s", path, error)
            self._counters["broken_admin_requests"] += 1
            records = []
        self._look_at_topics(one.key for one in records)
        done = path == PREFERRED_ELECTION_PATH or not records
        self._log.append([*records, _all_of(path, znode)] if done else records)
        self._seen[path] = _identity(znode) if done else (znode.czxid, None)

    def _look_at_topics(self, names: Iterable[str]) -> None:
        """Have topics appended that are not known yet: what asks for something may be read sooner
        than that they were created, but is not asked before that.
        """
        unknown = [name for name in names if name not in self._topics]
        if unknown:
            self._topics.look(Dirty(frozenset(map(topic_path, unknown))))

    def ask_again(self, topics: frozenset[str]) -> None:
        """Append what reassignments that were followed before still ask of topics."""
        if not topics:
            return
        znode = self._tree.get(REASSIGN_PARTITIONS_PATH)
        if znode is None or self._seen.get(REASSIGN_PARTITIONS_PATH) != (znode.czxid, None):
            return
        try:
            records = [one for one in reassignments(znode.data) if one.key in topics]
        except ValueError as error:
            logger.warning("%s asks for nothing again: %s", REASSIGN_PARTITIONS_PATH, error)
            return
        if records:
            self._log.append(records)


def _identity(znode: ZNode) -> tuple[int, int]:
    return znode.czxid, znode.version


def elections(data: bytes) -> list[NewRecord]:
    """Return one event per topic of /admin/preferred_replica_election; raises ValueError."""
    partitions = parse_preferred_election(data)
    return [_election(topic, numbers) for topic, numbers in _by_topic(partitions).items()]


def reassignments(data: bytes) -> list[NewRecord]:
    """Return one event per topic of /admin/reassign_partitions; raises ValueError."""
    targets = parse_reassignment(data)
    return [
        _reassignment(topic, numbers, [targets[topic, number] for number in numbers])
        for topic, numbers in _by_topic(targets).items()
    ]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        found.setdefault(topic, []).append(partition)
    return found


def _election(topic: str, partitions: list[int]) -> NewRecord:
    body = {
        "request_id": None,
        "topic": topic,
        "election_type": ElectionType.PREFERRED,
        "partitions": partitions,
    }
    return event(EventKind.ELECT_LEADERS_REQUESTED, body, topic)


def _reassignment(topic: str, partitions: list[int], targets: list[list[int]]) -> NewRecord:
    body = {"request_id": None, "topic": topic, "partitions": partitions, "targets": targets}
    return event(EventKind.ALTER_REASSIGNMENTS_REQUESTED, body, topic)


def _all_of(path: str, znode: ZNode) -> NewRecord:
    body = {"path": path, "zk_version": znode.version}
    return event(EventKind.ADMIN_ZNODE_OBSERVED, body)
