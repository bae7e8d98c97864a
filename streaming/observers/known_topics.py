"""What was read last of topics, and events out of what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.observers.overrides import Overrides, topic_overrides
from streaming.observers.states import StateTuple
from streaming.process.counters import Counters
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode
from streaming.zk.znodes import TopicZNode, parse_topic, topic_name


@dataclass(slots=True)
class KnownTopic:
    """What was read last of a topic: its znode's czxid and version, its overrides, its id."""

    czxid: int
    version: int
    own: Overrides
    topic_id: str | None


def read_topic(name: str, znode: ZNode) -> TopicZNode:
    """Return a topic as its znode has it; raises ValueError, for a name that none may have too."""
    topic_name(name)
    return parse_topic(znode.data)


def overrides_changed(
    session: ZkReader, counters: Counters, known: Mapping[str, KnownTopic], topics: Iterable[str]
) -> list[NewRecord]:
    """Read the configuration of those topics that are known again, note their overrides, and return
    topic_config_changed events where they differ; errors as `topic_overrides`.
    """
    names = sorted(set(topics) & known.keys())
    records = []
    for name, own in zip(names, topic_overrides(session, counters, names), strict=True):
        if own != known[name].own:
            known[name].own = own
            body = {"topic": name, **_said(own)}
            records.append(event(EventKind.TOPIC_CONFIG_CHANGED, body, name))
    return records


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
        "replicas": [topic.replicas[p] for p in partitions],
        "adding": [topic.adding.get(p, []) for p in partitions],
        "removing": [topic.removing.get(p, []) for p in partitions],
        "states": states if any(state is not None for state in states) else None,
        "zk_version": zk_version,
        **({"observed_again": True} if observed_again else {}),
        **({"unwritable": True} if unwritable else {}),
    }
    return event(EventKind.TOPIC_OBSERVED, body, name)
