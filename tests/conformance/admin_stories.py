"""Requests of administrators, by way of the gateway or of znodes under /admin."""

from __future__ import annotations

from typing import Any

import orjson

from state.admin_payloads import PREFERRED_ELECTION_PATH
from tests.conformance import names
from tests.conformance.sink import settle
from tests.conformance.verdict import NotUnderstoodError, only
from tests.conformance.world import World


def preferred_election(world: World, event: dict[str, Any]) -> None:
    """Somebody asks for preferred elections, through the znode or through the gateway."""
    only(event, {"event", "partitions", "via"}, "preferred_election")
    via = event.get("via", "api")
    if via not in {"zk", "api"}:
        raise NotUnderstoodError(f"preferred_election via {via!r}")
    asked = _by_topic(event["partitions"])
    if via == "api":
        _elect(world, "preferred", asked, "elect_leaders")
        return
    listed = [{"topic": t, "partition": p} for t, ps in asked.items() for p in ps]
    data = orjson.dumps({"version": 1, "partitions": listed})
    world.store.change(PREFERRED_ELECTION_PATH, data)
    _elect(world, "preferred", asked, None)
    version = world.store.nodes[PREFERRED_ELECTION_PATH].version
    world.happen("admin_znode_observed", path=PREFERRED_ELECTION_PATH, zk_version=version)
    settle(world)


def unclean_election(world: World, event: dict[str, Any]) -> None:
    """Somebody asks for unclean elections."""
    only(event, {"event", "partitions", "via"}, "unclean_election")
    _elect(world, "unclean", _by_topic(event["partitions"]), "elect_leaders")


def _by_topic(partitions: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in partitions:
        topic, partition = names.topic_partition(name)
        found.setdefault(topic, []).append(partition)
    return found


def _elect(
    world: World, election_type: str, asked: dict[str, list[int]], request_id: str | None
) -> None:
    for topic, partitions in asked.items():
        world.happen(
            "elect_leaders_requested",
            topic,
            request_id=request_id,
            election_type=election_type,
            topic=topic,
            partitions=partitions,
        )
    settle(world)
