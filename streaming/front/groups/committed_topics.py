"""Topics that groups commit offsets of: which partitions there are, and offsets that have to go.

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
    """Has offsets removed of topics that ceased to exist; lives on the front's event loop.

    Deletions count for the partitions of `__consumer_offsets` that are ours, from when brokers give
    them up until the role is lost: before and after, brokers remove such offsets. They are kept in
    mind while a partition is loaded, again too.
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
        if topics and self._view.standing.is_controller():
            self._held.update(self._view.led)
            self._known.leave(dict.fromkeys(self._held, topics))
            self._work.set()

    def loaded(self, partition: int, topics: set[str]) -> None:
        """Take the topics that a partition has offsets of, once it is read."""
        self._held.add(partition)
        self._found[partition] = topics

    def served(self, partition: int) -> None:
        """Take that a partition's groups are decided; of topics that are gone by now, which may
        have been deleted while nobody was here, the offsets go.
        """
        gone = {one for one in self._found.pop(partition, ()) if self._is_gone(one)}
        self._known.leave({partition: gone})
        self._work.set()

    def term_ended(self) -> None:
        """Nothing is served; it will be loaded again."""
        self._found.clear()

    def role_lost(self) -> None:
        """What is deleted from now on, brokers see to."""
        self.term_ended()
        self._held.clear()
        self._known.leaving.clear()

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
        """Return whether a topic is deleted. One that is not in the image may only not be told of
        yet, or have a znode that nobody can read.
        """
        image = self._known.image
        if image is None or topic in image.topic_ids:
            return False
        return topic in image.deleting or not self._topic_exists(topic)

    async def _remove(self) -> None:
        leaving = {
            partition: frozenset(topics)
            for partition, topics in self._known.leaving.items()
            if topics and self._view.is_served(partition)
        }
        if not leaving:
            return
        if concerned := self._concerned(leaving):
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
        self._known.left(leaving)

    def _concerned(self, leaving: Mapping[int, frozenset[str]]) -> Mapping[str, set[str]]:
        """Return the groups that may have such offsets, and of which topics: of all, for a group
        that asked for what is not decided yet.
        """
        everything = set().union(*leaving.values())
        asking = dict.fromkeys(self._commits.pause.groups, everything)
        having = self._view.image.with_offsets_of(everything)
        found: dict[str, set[str]] = {}
        for group, topics in {**having, **asking}.items():
            if gone := topics & leaving.get(self._view.partition_of(group), frozenset()):
                found[group] = gone
        return found
