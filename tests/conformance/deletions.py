"""Events about the deletion of topics.

What Kafka's tests hand to the deletion manager directly (what a failover found, replicas that
failed, topics to be resumed) is handed to the same functions here, past the log.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkpoints.machine_format import encode_machine
from state.decisions import Decision
from state.merge import merge
from state.partitions import deletion
from state.partitions.changes import Changes
from state.partitions.slot import Slot
from state.protocol_errors import ProtocolError
from streaming.zk.znodes import topic_deletion_path
from tests.conformance import names
from tests.conformance.sink import apply, settle
from tests.conformance.transitions import Move
from tests.conformance.verdict import NotUnderstoodError, only
from tests.conformance.world import World


def delete_topic(world: World, event: dict[str, Any]) -> None:
    """A client names topics under /admin/delete_topics, and the observer sees it."""
    only(event, {"event", "topic", "topics", "via"}, "delete_topic")
    if event.get("via", "zk") != "zk":
        raise NotUnderstoodError(f"delete_topic via {event['via']!r}")
    for topic in event.get("topics") or [event["topic"]]:
        world.store.put(topic_deletion_path(topic), b"")
        world.happen("topic_deletion_requested", topic, topic=topic)
    settle(world)


def stop_replica_response(world: World, event: dict[str, Any]) -> None:
    """A broker answers a StopReplica that deletes; `replicas` are [topic, partition, broker]."""
    only(event, {"event", "broker", "partitions", "replicas", "error"}, "stop_replica_response")
    replicas = event.get("replicas")
    if replicas is None:
        named = map(names.topic_partition, event["partitions"])
        replicas = [[topic, partition, event["broker"]] for topic, partition in named]
    error = event.get("error", 0)
    code = error if isinstance(error, int) else int(ProtocolError[error])
    for topic, broker in sorted({(topic, broker) for topic, _, broker in replicas}):
        partitions = [p for t, p, b in replicas if (t, b) == (topic, broker)]
        world.happen(
            "stop_replica_answered",
            topic,
            broker_id=broker,
            broker_epoch=world.brokers[broker][0],
            topic=topic,
            partitions=partitions,
            errors=[code] * len(partitions),
        )
    settle(world)


def deletion_manager_init(world: World, event: dict[str, Any]) -> None:
    """A failover has found marked topics, and some that cannot be deleted now."""
    only(event, {"event", "topics_to_be_deleted", "topics_ineligible"}, "deletion_manager_init")
    marked, halted = event["topics_to_be_deleted"], event.get("topics_ineligible", [])

    def move(slot: Slot, _: Changes) -> None:
        known = _known(slot, marked)
        deletion.mark(slot, known)
        for name in known:
            slot.table.deletions[name].halted = name in halted

    _drive(world, move, resume=False)


def resume_topic_deletion(world: World, event: dict[str, Any]) -> None:
    """Topics that were halted may be deleted now."""
    only(event, {"event", "topics"}, "resume_topic_deletion")
    _drive(world, lambda slot, _: deletion.release(slot, event["topics"]))


def replica_deletion_failed(world: World, event: dict[str, Any]) -> None:
    """Replicas could not be deleted; `replicas` are [topic, partition, broker]."""
    only(event, {"event", "replicas"}, "replica_deletion_failed")

    def move(slot: Slot, changes: Changes) -> None:
        rows = slot.table.rows
        mask = np.zeros(rows.replicas.shape, dtype=bool)
        for topic, partition, broker in event["replicas"]:
            for row in slot.table.find(topic, np.array([partition], dtype=np.int32)):
                if row >= 0:
                    mask[row] |= rows.replicas[row] == broker
        deletion.fail(slot, changes, mask & slot.table.in_deletion()[:, None])

    _drive(world, move)


def _known(slot: Slot, topics: list[str]) -> list[str]:
    return [topic for topic in topics if slot.table.topic(topic) is not None]


def _drive(world: World, move: Move, *, resume: bool = True) -> None:
    offset = world.next_offset()
    found: list[Decision] = []
    for key, slot in world.slots():
        changes = Changes.about_cluster(slot.table, offset)
        move(slot, changes)
        if resume:
            found.extend(deletion.finish_with_deletions(slot, changes))
        world.machines[key] = encode_machine(slot)
    apply(world, merge(found))
    settle(world)


def topics_to_be_deleted(world: World, expected: Any) -> Any:
    """Return the topics queued for deletion."""
    return _as_expected(world, expected, started=None, halted=None)


def topics_with_deletion_started(world: World, expected: Any) -> Any:
    """Return the topics whose deletion has started."""
    return _as_expected(world, expected, started=True, halted=None)


def topics_ineligible(world: World, expected: Any) -> Any:
    """Return the topics whose deletion is halted."""
    return _as_expected(world, expected, started=None, halted=True)


def _as_expected(
    world: World, expected: Any, *, started: bool | None, halted: bool | None
) -> list[str]:
    """Return topics in the order of the expected list where it is the same set."""
    came = [
        name
        for _, slot in world.slots()
        for name, found in slot.table.deletions.items()
        if started in (None, found.started) and halted in (None, found.halted)
    ]
    return list(expected) if set(came) == set(expected) else sorted(came)


def delete_topic_enabled(world: World, expected: Any) -> bool:
    """Return whether topics may be deleted."""
    return all(slot.config.delete_topics for _, slot in world.slots())
