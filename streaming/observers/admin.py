"""Watches the requests that tools leave under /admin."""

from __future__ import annotations

import logging

from state.admin_payloads import PREFERRED_ELECTION_PATH, ElectionType
from state.events import EventKind
from streaming.log.api import NewRecord
from streaming.observers.ports import Counters, EventAppender, event
from streaming.observers.tree import Dirty, WatchedTree
from streaming.zk.types import ZNode
from streaming.zk.znodes.admin import TopicPartition, parse_preferred_election

logger = logging.getLogger(__name__)

_Identity = tuple[int, int]


class AdminObserver:
    """Appends what a request asks for, topic by topic, and then that all of it was appended.

    That last event lets the cluster machine delete the znode. One that cannot be read asks for
    nothing: it is logged, counted as broken_admin_requests, and deleted like the others.
    """

    def __init__(self, tree: WatchedTree, log: EventAppender, counters: Counters) -> None:
        """Start with no request seen."""
        self._tree = tree
        self._log = log
        self._counters = counters
        self._seen: dict[str, _Identity] = {}

    def look(self, dirty: Dirty) -> None:
        """Read the requests that may be new and append them; returns when all is durable."""
        if PREFERRED_ELECTION_PATH in dirty:
            znode = self._fresh(PREFERRED_ELECTION_PATH)
            if znode is not None:
                self._log.append([*self._elections(znode), _all_of(PREFERRED_ELECTION_PATH, znode)])
                self._seen[PREFERRED_ELECTION_PATH] = _identity(znode)

    def _fresh(self, path: str) -> ZNode | None:
        znode = self._tree.get(path)
        return None if znode is None or self._seen.get(path) == _identity(znode) else znode

    def _elections(self, znode: ZNode) -> list[NewRecord]:
        try:
            partitions = parse_preferred_election(znode.data)
        except ValueError as error:
            self._broken(PREFERRED_ELECTION_PATH, error)
            return []
        return [_election(topic, numbers) for topic, numbers in _by_topic(partitions).items()]

    def _broken(self, path: str, error: ValueError) -> None:
        logger.warning("%s asks for nothing: %s", path, error)
        self._counters["broken_admin_requests"] += 1


def _identity(znode: ZNode) -> _Identity:
    return znode.czxid, znode.version


def _by_topic(partitions: list[TopicPartition]) -> dict[str, list[int]]:
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


def _all_of(path: str, znode: ZNode) -> NewRecord:
    body = {"path": path, "zk_version": znode.version}
    return event(EventKind.ADMIN_ZNODE_OBSERVED, body)
