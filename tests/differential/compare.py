"""Compares two sides after a step: their trees, and what their brokers were told.

Byte for byte, with three exceptions. Controller epochs count from the first one; ids that a
controller drew are any id; versions and leader epochs are compared by how far a step raised them.
Where Kafka's controller writes a znode several times in a step, ours may write it fewer times, but
not never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from streaming.zk.znodes import TOPICS_PATH, partition_state_path
from tests.differential.cluster import Tree
from tests.differential.told import Partition, State, Told

CURRENT = "(0, 0)"
_DRAWN_ID = "drawn"


@dataclass(frozen=True, slots=True)
class Node:
    """A znode in comparable form; leader_epoch is None but for partition states."""

    content: bytes
    version: int
    leader_epoch: int | None = None


Nodes = dict[str, Node]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same: where, and what each side has."""

    where: str
    stock: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.where}\n    Kafka       {self.stock}\n    helmstream  {self.ours}"


@dataclass(slots=True)
class Look:
    """Both sides after a step."""

    stock: Nodes
    ours: Nodes
    stock_told: dict[int, Told] = field(default_factory=dict)
    ours_told: dict[int, Told] = field(default_factory=dict)


def nodes(tree: Tree, first_epoch: int, given_ids: set[str | None]) -> Nodes:
    """Return a tree in comparable form; given_ids: topic ids that no controller drew."""
    return {path: _node(path, *znode, first_epoch, given_ids) for path, znode in tree.items()}


def _node(
    path: str, data: bytes, version: int, first_epoch: int, given_ids: set[str | None]
) -> Node:
    if not path.startswith(f"{TOPICS_PATH}/") or not data:
        return Node(data or b"", version)  # ZooKeeper tells no data from data of no length
    content = orjson.loads(data)
    if path.endswith("/state"):
        epoch = content["leader_epoch"]
        content["leader_epoch"] = 0
        content["controller_epoch"] -= first_epoch
        return Node(orjson.dumps(content), version, epoch)
    if "topic_id" in content and content["topic_id"] not in given_ids:
        content["topic_id"] = _DRAWN_ID
    return Node(orjson.dumps(content), version)


def differences(before: Look, now: Look) -> list[Difference]:
    """Return everything that differs after a step."""
    return [*_in_trees(before, now), *_in_what_was_told(now)]


def _in_trees(before: Look, now: Look) -> Iterator[Difference]:
    for path in sorted(now.stock.keys() | now.ours.keys()):
        stock, ours = now.stock.get(path), now.ours.get(path)
        if stock is None or ours is None:
            yield Difference(path, _content(stock), _content(ours))
            continue
        if stock.content != ours.content:
            yield Difference(path, stock.content, ours.content)
        rises = [
            (
                "version",
                _raised(before.stock, now.stock, path),
                _raised(before.ours, now.ours, path),
            ),
            (
                "leader epoch",
                _epoch_raised(before.stock, now.stock, path),
                _epoch_raised(before.ours, now.ours, path),
            ),
        ]
        for what, by_stock, by_ours in rises:
            if not _may_be(by_stock, by_ours):
                yield Difference(f"{path}, rise of the {what}", by_stock, by_ours)


def _may_be(stock: int, ours: int) -> bool:
    return 0 < ours <= stock or stock == ours


def _content(node: Node | None) -> bytes | None:
    return None if node is None else node.content


def _raised(before: Nodes, now: Nodes, path: str) -> int:
    return now[path].version - (before[path].version if path in before else -1)


def _epoch_raised(before: Nodes, now: Nodes, path: str) -> int:
    epoch = now[path].leader_epoch
    if epoch is None:
        return 0
    earlier = before[path].leader_epoch if path in before else None
    return epoch - (-1 if earlier is None else earlier)


def _in_what_was_told(now: Look) -> Iterator[Difference]:
    for broker in sorted(now.stock_told.keys() | now.ours_told.keys()):
        stock, ours = now.stock_told[broker], now.ours_told[broker]
        for name in ("metadata", "hosted"):
            yield from _states(
                f"broker {broker}, {name} of",
                _relative(getattr(stock, name), now.stock),
                _relative(getattr(ours, name), now.ours),
            )
        yield from _states(f"broker {broker}, stopped", stock.stopped, ours.stopped)


def _relative(states: Mapping[Partition, State], tree: Nodes) -> dict[Partition, dict[str, Any]]:
    """Return what was told, with how far its epochs are behind the znode."""
    found = {}
    for (topic, partition), state in states.items():
        node = tree.get(partition_state_path(topic, partition))
        behind = "no znode"
        if node is not None and node.leader_epoch is not None:
            behind = str((node.leader_epoch - state.epochs[0], node.version - state.epochs[1]))
        found[topic, partition] = {**state.fields, "behind": behind}
    return found


def _states(
    what: str, stock: Mapping[Partition, Any], ours: Mapping[Partition, Any]
) -> Iterator[Difference]:
    for at in sorted(stock.keys() | ours.keys()):
        if stock.get(at) != ours.get(at):
            yield Difference(f"{what} {at[0]}-{at[1]}", stock.get(at), ours.get(at))
