"""What was read last of topics, and events out of what differs."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, KeysView, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.observers.overrides import Overrides, topic_overrides
from streaming.observers.states import StateTuple
from streaming.process.counters import Counters
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode
from streaming.zk.znodes import TopicZNode, parse_topic, topic_name
from streaming.zk.znodes.topic import Assignment


@dataclass(slots=True)
class KnownTopic:
    """What was read last of a topic: its znode's czxid and version, its overrides, its id, and how
    many partitions it has.
    """

    czxid: int
    version: int
    own: Overrides
    topic_id: str | None
    partition_count: int


T = TypeVar("T", bound=KnownTopic)


class KnownTopics(Generic[T]):
    """The topics as they were read last, by name."""

    def __init__(self) -> None:
        """Start with no topic known."""
        self._topics: dict[str, T] = {}

    def __len__(self) -> int:
        """Return the number of topics."""
        return len(self._topics)

    def __contains__(self, name: str) -> bool:
        """Return whether a topic of that name was read."""
        return name in self._topics

    def names(self) -> KeysView[str]:
        """Return the names of all topics."""
        return self._topics.keys()

    def items(self) -> ItemsView[str, T]:
        """Return all topics with their names."""
        return self._topics.items()

    def get(self, name: str) -> T | None:
        """Return what was read last of a topic, None for nothing."""
        return self._topics.get(name)

    def topic_id(self, name: str) -> str | None:
        """Return the id that a topic was read with; None when it has none or is not known."""
        known = self._topics.get(name)
        return None if known is None else known.topic_id

    def know(self, name: str, topic: T) -> None:
        """Take what was just read of a topic."""
        self._topics[name] = topic

    def forget(self, name: str) -> T | None:
        """Drop a topic that is gone and return what was known of it, None for nothing."""
        return self._topics.pop(name, None)

    def config_changes(
        self, session: ZkReader, counters: Counters, names: Iterable[str]
    ) -> list[NewRecord]:
        """Read the configuration of those topics that are known again, note their overrides, and
        return topic_config_changed events where they differ; errors as `topic_overrides`.
        """
        known = sorted(set(names) & self._topics.keys())
        records = []
        for name, own in zip(known, topic_overrides(session, counters, known), strict=True):
            if own != self._topics[name].own:
                self._topics[name].own = own
                body = {"topic": name, **_said(own)}
                records.append(event(EventKind.TOPIC_CONFIG_CHANGED, body, name))
        return records


def read_topic(name: str, znode: ZNode) -> TopicZNode:
    """Return a topic as its znode has it; raises ValueError, for a name that none may have too."""
    topic_name(name)
    return parse_topic(znode.data)


def removed(name: str, known: KnownTopic | None) -> NewRecord:
    """Return the topic_removed event; None: it is not known which topic of that name there was."""
    body = {"topic": name, "topic_id": None if known is None else known.topic_id}
    return event(EventKind.TOPIC_REMOVED, body, name)


def _said(own: Overrides) -> dict[str, Any]:
    return {"unclean": own.unclean, "min_insync_replicas": own.min_insync}


def observed(
    name: str,
    topic: TopicZNode,
    zk_version: int,
    own: Overrides,
    states: Sequence[StateTuple | None],
    *,
    new_topic_id: str | None = None,
    observed_again: bool = False,
    unwritable: bool = False,
) -> NewRecord:
    """Return the topic_observed event; states in the order of topic.replicas."""
    partitions = list(topic.replicas)
    body = {
        "topic": name,
        "topic_id": topic.topic_id,
        "new_topic_id": new_topic_id,
        **_said(own),
        "partitions": partitions,
        "replicas": list(topic.replicas.values()),
        "adding": _by_partition(topic.adding, partitions),
        "removing": _by_partition(topic.removing, partitions),
        "states": states if any(state is not None for state in states) else None,
        "zk_version": zk_version,
        **({"observed_again": True} if observed_again else {}),
        **({"unwritable": True} if unwritable else {}),
    }
    return event(EventKind.TOPIC_OBSERVED, body, name)


def _by_partition(moving: Assignment, partitions: Sequence[int]) -> list[Sequence[int]]:
    """Return what is added to each partition, or removed from it; mostly nothing from any."""
    if not moving:
        return [()] * len(partitions)
    return [moving.get(partition, ()) for partition in partitions]
