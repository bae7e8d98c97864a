"""Which function makes which event of the scenarios' vocabulary happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.conformance import (
    admin_stories,
    creations,
    deletions,
    stories,
    topic_stories,
    transitions,
)
from tests.conformance.verdict import NotUnderstoodError, SkippedError
from tests.conformance.world import World

DRIVERS: Mapping[str, Callable[[World, dict[str, Any]], None]] = {
    function.__name__: function
    for function in (
        transitions.partition_transition,
        transitions.replica_transition,
        transitions.replica_sm_startup,
        transitions.live_set_change,
        transitions.zk_error,
        transitions.elect,
        stories.broker_up,
        stories.broker_down,
        stories.elect_controller,
        stories.controller_failover,
        stories.controller_taken_over,
        stories.controller_shutdown,
        stories.pause_event_loop,
        stories.resume_event_loop,
        stories.controlled_shutdown,
        stories.allocate_producer_ids,
        stories.auto_rebalance_tick,
        stories.config_change,
        stories.log_dir_failure,
        stories.leader_and_isr_response,
        topic_stories.create_topic,
        topic_stories.add_partitions,
        deletions.delete_topic,
        deletions.stop_replica_response,
        deletions.deletion_manager_init,
        deletions.resume_topic_deletion,
        deletions.replica_deletion_failed,
        topic_stories.isr_change,
        topic_stories.alter_partition,
        admin_stories.preferred_election,
        admin_stories.unclean_election,
        admin_stories.reassign,
        admin_stories.cancel_reassign,
        admin_stories.list_reassignments,
        creations.assign_replicas,
        creations.rack_alternated_brokers,
        creations.validate_and_create_topic,
        creations.validate_create_topic,
    )
}

WITHOUT_COUNTERPART: Mapping[str, str] = {
    "broker_metadatas": "rack modes are chosen by admin tools: a controller always heeds racks",
    "auto_create_topic": "a broker places it: a controller finds the topic with its assignment",
    "queue_event": "an event of Kafka's controller queue has no counterpart in the log",
}
"""Events of the vocabulary that a machine here cannot be given, with the reason."""


def understand(events: list[dict[str, Any]]) -> None:
    """Raise for what cannot happen here: NotUnderstoodError when an event is not in the vocabulary,
    SkippedError when one has no counterpart here.
    """
    kinds = [event["event"] for event in events]
    for kind in kinds:
        if kind not in DRIVERS and kind not in WITHOUT_COUNTERPART:
            raise NotUnderstoodError(f"event {kind!r} is not in the vocabulary")
    for kind in kinds:
        if kind in WITHOUT_COUNTERPART:
            raise SkippedError(f"{kind}: {WITHOUT_COUNTERPART[kind]}")


def make_happen(world: World, event: dict[str, Any]) -> None:
    """Make one event of `when` happen."""
    DRIVERS[event["event"]](world, event)
