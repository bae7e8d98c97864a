"""Requests of administrators, by way of the gateway or of znodes under /admin."""

from __future__ import annotations

from typing import Any

from state.partitions.reassignment import motion_of
from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from streaming.zk.znodes.admin import reassignment_bytes
from tests.conformance import names
from tests.conformance.sink import settle
from tests.conformance.verdict import NotUnderstoodError, only
from tests.conformance.world import World
from tests.fixtures.znodes import preferred_election_bytes


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
    data = preferred_election_bytes([(t, p) for t, ps in asked.items() for p in ps])
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


def reassign(world: World, event: dict[str, Any]) -> None:
    """Somebody moves a partition, through the znode or through the gateway."""
    only(event, {"event", "topic", "partition", "target", "via"}, "reassign")
    via = event.get("via", "api")
    if via not in {"zk", "api"}:
        raise NotUnderstoodError(f"reassign via {via!r}")
    topic, partition, target = event["topic"], event["partition"], event["target"]
    if via == "zk":
        data = reassignment_bytes({(topic, partition): target})
        world.store.change(REASSIGN_PARTITIONS_PATH, data)
    _alter(world, topic, partition, target, None if via == "zk" else "alter_reassignments")


def cancel_reassign(world: World, event: dict[str, Any]) -> None:
    """Somebody takes a reassignment back."""
    only(event, {"event", "topic", "partition", "via"}, "cancel_reassign")
    _alter(world, event["topic"], event["partition"], None, "alter_reassignments")


def _alter(
    world: World, topic: str, partition: int, target: list[int] | None, request_id: str | None
) -> None:
    world.happen(
        "alter_reassignments_requested",
        topic,
        request_id=request_id,
        topic=topic,
        partitions=[partition],
        targets=[target],
    )
    settle(world)


def list_reassignments(world: World, event: dict[str, Any]) -> None:
    """Somebody asks what is in motion."""
    only(event, {"event", "partitions"}, "list_reassignments")
    asked = event.get("partitions")
    found = {}
    for _, slot in world.slots():
        for topic in slot.table.topics:
            for row in slot.table.rows_of(topic.name).tolist():
                name = f"{topic.name}-{slot.table.rows.partition[row]}"
                motion = motion_of(slot.table.rows, row)
                if motion.in_progress and (asked is None or name in asked):
                    found[name] = {
                        "replicas": list(motion.replicas),
                        "adding": [id_ for id_ in motion.replicas if id_ in motion.adding],
                        "removing": [id_ for id_ in motion.replicas if id_ in motion.removing],
                    }
    world.answer["reassignments"] = found
