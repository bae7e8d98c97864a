"""Reads the store as the observers do: what events about topics and states carry."""

from __future__ import annotations

from typing import Any

import orjson

from streaming.front.load_events import TOPIC_IDS_SINCE
from streaming.zk.znodes import (
    TOPICS_PATH,
    entity_config_path,
    parse_config,
    parse_topic,
    partition_state_path,
    topic_path,
)
from tests.conformance.store import FakeZooKeeper
from tests.conformance.world import World


def states_now(store: FakeZooKeeper, topic: str, partitions: list[int]) -> list[list[Any] | None]:
    """Return the state tuples of some partitions, None where there is no znode."""
    found: list[list[Any] | None] = []
    for partition in partitions:
        node = store.get(partition_state_path(topic, partition))
        if node is None:
            found.append(None)
            continue
        state = orjson.loads(node.data)
        found.append(
            [
                state["leader"],
                state["leader_epoch"],
                state["isr"],
                state["controller_epoch"],
                state.get("leader_recovery_state", 0),
                node.version,
            ]
        )
    return found


def topics(store: FakeZooKeeper) -> list[str]:
    """Return the topics in the store, by name."""
    prefix = TOPICS_PATH + "/"
    return sorted(
        path.removeprefix(prefix)
        for path in store.nodes
        if path.startswith(prefix) and "/" not in path.removeprefix(prefix)
    )


def topic_now(world: World, topic: str) -> dict[str, Any]:
    """Return the body of topic_observed for a topic of the store."""
    store = world.store
    node = store.nodes[topic_path(topic)]
    znode = parse_topic(node.data)
    partitions = list(znode.replicas)
    return {
        "topic": topic,
        "topic_id": znode.topic_id,
        "new_topic_id": world.minted_id(topic) if world.protocol >= TOPIC_IDS_SINCE else None,
        "unclean": unclean(store, topic),
        "partitions": partitions,
        "replicas": [list(znode.replicas[partition]) for partition in partitions],
        "adding": [list(znode.adding.get(partition, [])) for partition in partitions],
        "removing": [list(znode.removing.get(partition, [])) for partition in partitions],
        "states": states_now(store, topic, partitions),
        "zk_version": node.version,
    }


def unclean(store: FakeZooKeeper, topic: str) -> bool | None:
    """Return a topic's override of unclean.leader.election.enable."""
    node = store.get(entity_config_path("topics", topic))
    value = None if node is None else parse_config(node.data).get("unclean.leader.election.enable")
    return None if value is None else value == "true"
