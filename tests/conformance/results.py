"""Reads the facts of `then.result`, each of which has its own meaning."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from checkpoints.machine_format import decode_machine
from state.cluster.authority import Phase
from state.partitions.legal import PartitionState
from state.routing import CLUSTER_KEY
from state.topic_ids import topic_id_to_text
from streaming.front.controller_role import loss_level
from streaming.observers.notifications import Fenced
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH, parse_topic, topic_path
from tests.conformance import deletions, names
from tests.conformance.verdict import Findings, NotUnderstoodError
from tests.conformance.world import World

CALLS = {
    "batches",
    "get_partition_state_calls",
    "create_partition_state_calls",
    "update_partition_state_calls",
}


def check_result(world: World, found: Findings, fact: str, expected: Any) -> None:
    """Check one fact of `then.result`."""
    if fact in CALLS:
        found.expect(fact, expected, world.calls.get(fact, 0))
    elif fact in _PER_ASSIGNMENT:
        _check_assignments(world, found, fact, expected)
    elif fact in _READERS:
        found.expect(fact, expected, _READERS[fact](world, expected))
    elif fact in world.answer:
        found.expect(fact, expected, world.answer[fact])
    else:
        raise NotUnderstoodError(f"result {fact!r}")


def _epoch(world: World, expected: Any) -> int:
    """Return the controller epoch; the machine's and the store's must agree."""
    stored = int(world.store.nodes[CONTROLLER_EPOCH_PATH].data)
    held = decode_machine(world.machines[CLUSTER_KEY]).authority.epoch
    return stored if stored == held else -1


def _batch_epoch(world: World, expected: Any) -> int:
    if world.epoch_in_batch is not None:
        return world.epoch_in_batch
    return decode_machine(world.machines[CLUSTER_KEY]).authority.epoch


def _offline_count(world: World, expected: Any) -> int:
    """PartitionStateMachine.offlinePartitionCount: a topic whose deletion has started counts no
    more.
    """
    return sum(
        int((slot.table.rows.state[slot.table.rows_of(topic.name)] == PartitionState.OFFLINE).sum())
        for _, slot in world.slots()
        for topic in slot.table.topics
        if not (deletion := slot.table.deletions.get(topic.name)) or not deletion.started
    )


def _told(world: World, expected: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return which of the expected partitions UpdateMetadata has told the brokers of."""
    told = {(rpc.broker, rpc.partition) for rpc in world.rpcs if rpc.api == "UpdateMetadata"}
    return {
        broker: [name for name in partitions if (int(broker), name) in told]
        for broker, partitions in expected.items()
    }


def _ids_in_memory(world: World, expected: dict[str, str | None]) -> dict[str, str | None]:
    ids = {
        topic.name: topic_id_to_text(topic.topic_id)
        for _, slot in world.slots()
        for topic in slot.table.topics
    }
    return _labelled({topic: ids.get(topic) for topic in expected}, expected)


def _ids_in_znode(world: World, expected: dict[str, str | None]) -> dict[str, str | None]:
    ids = {
        topic: parse_topic(world.store.nodes[topic_path(topic)].data).topic_id for topic in expected
    }
    return _labelled(ids, expected)


def _znodes(world: World, expected: dict[str, Any]) -> dict[str, Any]:
    """Return what znodes hold, with their version."""
    found = {path: world.store.get(path) for path in expected}
    return {
        path: None if node is None else {**orjson.loads(node.data), "zk_version": node.version}
        for path, node in found.items()
    }


def _labelled(ids: dict[str, str | None], expected: dict[str, str | None]) -> dict[str, str | None]:
    """Return the labels that ids stand for: the expected one where it is that one's id."""
    return {
        topic: label if ids[topic] == names.topic_id(label) else ids[topic]
        for topic, label in expected.items()
    }


def _active(world: World, expected: Any) -> bool:
    return world.phases() == {Phase.ACTIVE}


def _resign_reason(world: World, expected: Any) -> str | None:
    return world.resigned


def _logged_level(world: World, expected: Any) -> str | None:
    """Return the level at which the front tells that a write of this term was fenced."""
    return logging.getLevelName(loss_level(Fenced("fenced"))) if world.resigned else None


def _all_topics(world: World, expected: Any) -> list[str]:
    return sorted(topic.name for _, slot in world.slots() for topic in slot.table.topics)


def _remaining(world: World, expected: Any) -> list[str]:
    return world.remaining


_READERS: Mapping[str, Callable[[World, Any], Any]] = {
    "controller_epoch": _epoch,
    "batch_controller_epoch": _batch_epoch,
    "offline_partition_count": _offline_count,
    "delete_topic_enabled": deletions.delete_topic_enabled,
    "topics_to_be_deleted": deletions.topics_to_be_deleted,
    "topics_with_deletion_started": deletions.topics_with_deletion_started,
    "topics_ineligible_for_deletion": deletions.topics_ineligible,
    "metadata_cache_has_on": _told,
    "topic_ids_in_memory": _ids_in_memory,
    "topic_ids_in_znode": _ids_in_znode,
    "znode": _znodes,
    "controller_active": _active,
    "resign_reason": _resign_reason,
    "all_topics": _all_topics,
    "logged_level": _logged_level,
    "remaining": _remaining,
    "remaining_partitions": _remaining,
    "partitions_remaining": _remaining,
}


def _check_assignments(world: World, found: Findings, fact: str, expected: Any) -> None:
    """Check a fact that must hold of every placement tried."""
    placements = world.answer.get("assignments", [])
    if not placements:
        found.expect(fact, expected, None)
    for placed in placements:
        came = _PER_ASSIGNMENT[fact](world, placed, expected)
        if came != expected:
            found.expect(fact, expected, came)
            return


def _each(values: list[int], expected: Any) -> Any:
    """Return the common value, or all of them when they differ."""
    return values[0] if len(set(values)) == 1 else sorted(values)


def _per_broker(world: World, held: Counter[int], expected: Any) -> Any:
    counts = {broker: held[broker] for broker in sorted(world.brokers)}
    if isinstance(expected, dict):
        return {str(broker): count for broker, count in counts.items()}
    return _each(list(counts.values()), expected)


def _racks(world: World, ids: list[int]) -> int:
    return len({world.brokers[broker][1] for broker in ids})


_Placed = dict[str, list[int]]

_PER_ASSIGNMENT: Mapping[str, Callable[[World, _Placed, Any], Any]] = {
    "assignment": lambda _, placed, expected: placed,
    "no_duplicate_brokers": lambda _, placed, expected: all(
        len(set(ids)) == len(ids) for ids in placed.values()
    ),
    "distinct_racks_per_partition": lambda world, placed, expected: _each(
        [_racks(world, ids) for ids in placed.values()], expected
    ),
    "replicas_per_partition": lambda _, placed, expected: _each(
        [len(ids) for ids in placed.values()], expected
    ),
    "leaders_per_broker": lambda world, placed, expected: _per_broker(
        world, Counter(ids[0] for ids in placed.values()), expected
    ),
    "replicas_per_broker": lambda world, placed, expected: _per_broker(
        world, Counter(broker for ids in placed.values() for broker in ids), expected
    ),
}
