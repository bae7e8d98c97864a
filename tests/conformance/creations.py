"""Events of the assignment area: placing replicas, and creating topics through the gateway."""

from __future__ import annotations

from typing import Any

from state.partitions.placement import (
    IncompleteRacks,
    InvalidPartitions,
    InvalidReplicationFactor,
    PlacementError,
    alternate_racks,
    place_replicas,
)
from tests.conformance.sink import settle
from tests.conformance.verdict import only
from tests.conformance.world import World

ERROR_NAMES = {
    IncompleteRacks: "ADMIN_OPERATION",
    InvalidPartitions: "INVALID_PARTITIONS",
    InvalidReplicationFactor: "INVALID_REPLICATION_FACTOR",
}


def assign_replicas(world: World, event: dict[str, Any]) -> None:
    """Place replicas; where the start is random, place them for every start and every shift."""
    fields = {"event", "n_partitions", "replication_factor", "fixed_start_index"}
    only(event, fields | {"start_partition_id"}, "assign_replicas")
    racks = {broker: rack for broker, (_, rack) in world.brokers.items()}
    fixed = event.get("fixed_start_index", -1)
    everywhere = [(start, shift) for start in range(len(racks)) for shift in range(len(racks))]
    first = max(event.get("start_partition_id", -1), 0)
    world.answer["assignments"] = []
    for start, shift in [(fixed, fixed)] if fixed >= 0 else everywhere or [(0, 0)]:
        try:
            placed = place_replicas(
                racks,
                event["n_partitions"],
                event["replication_factor"],
                start_index=start,
                shift=shift,
                first_partition=first,
            )
        except PlacementError as error:
            world.answer["errors"] = {"assign_replicas": ERROR_NAMES[type(error)]}
            return
        numbered = dict(enumerate(placed.tolist(), start=first))
        world.answer["assignments"].append({str(p): ids for p, ids in numbered.items()})


def rack_alternated_brokers(world: World, event: dict[str, Any]) -> None:
    """Order the brokers so that racks take turns."""
    only(event, {"event"}, "rack_alternated_brokers")
    racks = {broker: rack for broker, (_, rack) in world.brokers.items() if rack is not None}
    world.answer["brokers"] = alternate_racks(racks)


def validate_and_create_topic(world: World, event: dict[str, Any]) -> None:
    """Create a topic through the gateway."""
    _create(world, event, validate_only=False)


def validate_create_topic(world: World, event: dict[str, Any]) -> None:
    """Only ask whether a topic could be created."""
    _create(world, event, validate_only=True)


def _create(world: World, event: dict[str, Any], *, validate_only: bool) -> None:
    fields = {"event", "topic", "assignment", "n_partitions", "replication_factor", "config"}
    only(event, fields, event["event"])
    config = {name: str(value).lower() for name, value in event.get("config", {}).items()}
    world.happen(
        "create_topic_requested",
        event["topic"],
        request_id="create_topic",
        topic=event["topic"],
        partitions=event.get("n_partitions", -1),
        replication_factor=event.get("replication_factor", -1),
        assignment=event.get("assignment"),
        configs=config,
        validate_only=validate_only,
        start_index=0,
        shift=0,
    )
    settle(world)
