"""Removes the offsets of topics that ceased to exist.

A topic that ceased to exist counts as unknown until no group has offsets of it. So nobody commits
offsets of a new topic of that name before those of the old one are gone, and none of the new one go
with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from state.event_kinds import EventKind
from streaming.front.groups.direct_commits import DirectCommits
from streaming.front.groups.known_partitions import KnownPartitions
from streaming.front.groups.view import CoordinatorView
from streaming.gateway.ports import NotReplicated
from streaming.log.events import AppendEvents, event
from streaming.offsets.term_over import TermOver

_PAUSE_S = 1.0


class CommittedTopics:
    """Appends events that remove such offsets; lives on the front's event loop.

    Deletions count for the partitions of `__consumer_offsets` that are ours, from when brokers give
    them up until the role is lost: before and after, brokers remove such offsets. They are kept
    while a partition is loaded, and while it is loaded again.
    """

    def __init__(
        self,
        known: KnownPartitions,
        commits: DirectCommits,
        append: AppendEvents,
        view: CoordinatorView,
        topic_exists: Callable[[str], bool],
    ) -> None:
        """topic_exists: whether ZooKeeper has a topic, as far as that was read."""
        self._known = known
        self._commits = commits
        self._append = append
        self._view = view
        self._topic_exists = topic_exists
        self._held: set[int] = set()
        self._found: dict[int, set[str]] = {}
        self._work = asyncio.Event()

    def deleted(self, topics: Collection[str]) -> None:
        """Take topics that ceased to exist."""
        if topics and self._view.node_role.is_controller():
            self._held.update(self._view.led)
            self._known.exclude(dict.fromkeys(self._held, topics))
            self._work.set()

    def loaded(self, partition: int, topics: set[str]) -> None:
        """Take the topics that a partition has offsets of, once it is read."""
        self._held.add(partition)
        self._found[partition] = topics

    def served(self, partition: int) -> None:
        """Remove the offsets of topics that are gone, once a partition's groups are decided: they
        may have been deleted while this node did not run.
        """
        gone = {one for one in self._found.pop(partition, ()) if self._is_gone(one)}
        self._known.exclude({partition: gone})
        self._work.set()

    def term_ended(self) -> None:
        """Forget what was loaded; it will be loaded again."""
        self._found.clear()

    def role_lost(self) -> None:
        """Forget deletions: from now on brokers remove such offsets."""
        self.term_ended()
        self._held.clear()
        self._known.excluded.clear()

    async def run(self) -> None:
        """Remove offsets whenever some have to go; cancel to stop."""
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._remove()
            except (NotReplicated, TermOver):
                await asyncio.sleep(_PAUSE_S)
                self._work.set()

    def _is_gone(self, topic: str) -> bool:
        """Return whether a topic is deleted. One that is not in the image may be too new for it, or
        have a znode that cannot be read.
        """
        image = self._known.image
        if image is None or topic in image.topic_ids:
            return False
        return topic in image.deleting or not self._topic_exists(topic)

    async def _remove(self) -> None:
        excluded = {
            partition: frozenset(topics)
            for partition, topics in self._known.excluded.items()
            if topics and self._view.is_served(partition)
        }
        if not excluded:
            return
        if concerned := self._concerned(excluded):
            kind = EventKind.COMMITTED_TOPICS_DELETED
            records = [
                event(
                    kind,
                    {
                        "group": group,
                        "partition": self._view.partition_of(group),
                        "topics": sorted(topics),
                    },
                    group,
                )
                for group, topics in sorted(concerned.items())
            ]
            await self._commits.pause.until_decided(concerned, lambda: self._append(records))
        self._known.include(excluded)

    def _concerned(self, excluded: Mapping[int, frozenset[str]]) -> Mapping[str, set[str]]:
        """Return the groups that may have such offsets, and of which topics: of all, for a paused
        group, of which something is not decided yet.
        """
        everything = set().union(*excluded.values())
        paused = dict.fromkeys(self._commits.pause.groups, everything)
        having = self._view.image.with_offsets_of(everything)
        found: dict[str, set[str]] = {}
        for group, topics in {**having, **paused}.items():
            if gone := topics & excluded.get(self._view.partition_of(group), frozenset()):
                found[group] = gone
        return found
