"""Topic znodes (/brokers/topics/T): assignment, running reassignment and topic id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from state.json_values import int32, optional_text, replica_lists, text
from state.partitions.creation import is_legal_name
from state.topic_ids import topic_id_from_text

Assignment = Mapping[int, Sequence[int]]

_SHOWN_LENGTH = 300


@dataclass(frozen=True, slots=True)
class TopicZNode:
    """A topic's assignment by partition; adding and removing only have the partitions in motion.

    topic_id is base64url of 16 bytes without padding, None when the topic has none. Versions 1 and
    2 (Kafka before 2.4 and before 2.8) have no adding, removing or id.
    """

    replicas: Assignment
    topic_id: str | None = None
    adding: Assignment = field(default_factory=dict)
    removing: Assignment = field(default_factory=dict)
    version: int = 3


def topic_bytes(topic: TopicZNode) -> bytes:
    """Write a topic znode exactly as Kafka 3.9 does, order of partitions included.

    Version 3 (adding, removing and, if there is one, the id), version 2 without the id, version 1
    with the assignment only. Source: TopicZNode.encode, and for the order Scala's mutable.HashMap.
    """
    znode: dict[str, Any] = {"partitions": _in_scala_order(topic.replicas)}
    if topic.version >= 3 and topic.topic_id is not None:
        znode["topic_id"] = topic.topic_id
    if topic.version >= 2:
        znode["adding_replicas"] = _in_scala_order(topic.adding)
        znode["removing_replicas"] = _in_scala_order(topic.removing)
    znode["version"] = topic.version
    return orjson.dumps(znode)


def parse_topic(data: bytes) -> TopicZNode:
    """Read a topic znode of any version, partitions in number order.

    Raises ValueError naming what is wrong: a list of replicas that names a broker twice, or has
    more than REPLICAS_MAX, is.
    """
    try:
        znode = orjson.loads(data)
        topic_id = optional_text(znode.get("topic_id"))
        topic_id_from_text(topic_id)
        return TopicZNode(
            _assignment(znode["partitions"]),
            topic_id,
            _assignment(znode.get("adding_replicas") or {}),
            _assignment(znode.get("removing_replicas") or {}),
            int32(znode.get("version", 1)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"broken topic znode: {error!r} in {data[:200]!r}") from error


def topic_name(value: object) -> str:
    """Return the name of a topic; raises TypeError, ValueError for one that no topic may have."""
    name = text(value)
    if not is_legal_name(name):
        shown = name if len(name) <= _SHOWN_LENGTH else f"{name[:_SHOWN_LENGTH]}..."
        raise ValueError(f"{shown!r} is no legal name of a topic")
    return name


def partition_number(value: object) -> int:
    """Return the number of a partition; raises TypeError, ValueError."""
    number = int32(value)
    if number < 0:
        raise ValueError(f"{number} is no partition")
    return number


def _assignment(partitions: Mapping[str, object]) -> dict[int, list[int]]:
    lists = replica_lists(list(partitions.values()))
    return {number: lists[place] for number, place in _places_of(tuple(partitions))}


@lru_cache(maxsize=16)
def _places_of(names: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Return the partitions that names stand for, in order, and where each is named; ValueError for
    one that is written otherwise. Topics of as many partitions name the same.
    """
    numbers = list(map(int, names))
    written = tuple(map(str, numbers))
    if written != names:
        right, name = next(pair for pair in zip(written, names, strict=True) if len(set(pair)) > 1)
        raise ValueError(f"partition {name!r} is not written as {right}")
    for number in {min(numbers, default=0), max(numbers, default=0)}:
        partition_number(number)
    return tuple(sorted((number, place) for place, number in enumerate(numbers)))


def _in_scala_order(assignment: Assignment) -> dict[str, list[int]]:
    """Order partitions as Kafka's hash map gives them: by slot of a table that doubles, by hash."""
    named = {str(p): list(replicas) for p, replicas in assignment.items() if replicas}
    table_size = 16
    while len(named) >= table_size * 3 // 4:
        table_size *= 2
    hashes = {name: _scala_hash(name) for name in named}
    order = sorted(named, key=lambda name: (hashes[name] % table_size, hashes[name]))
    return {name: named[name] for name in order}


def _scala_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    value ^= value >> 16
    return value - (1 << 32) if value >= 1 << 31 else value
