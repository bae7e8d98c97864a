"""Decisions as single records with names, for those who read them one by one.

Inside the system a decision about many partitions is one column block; this is the other end of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from state.blocks import Column, decode_block
from state.change_columns import ID_LISTS, REPLICA_MASKS
from state.decisions import BLOCK_KINDS, Action, DecisionKind, Rule
from state.matrix import NONE
from state.partitions.legal import PartitionState, ReplicaState

_RULES = {rule.value: rule.name.lower() for rule in Rule}


def open_body(kind: str, body: bytes) -> dict[str, Any] | list[dict[str, Any]]:
    """Return a decision's JSON object, or one object per row of its block.

    Raises CorruptBlock or ValueError when the body is neither.
    """
    if kind not in BLOCK_KINDS:
        opened: dict[str, Any] = orjson.loads(body)
        return opened
    return open_rows(kind, body)


def open_rows(kind: str, body: bytes) -> list[dict[str, Any]]:
    """Return the rows of a block, opened; raises CorruptBlock."""
    columns, extra = decode_block(body)
    return _opened(kind, columns, extra)


def open_rows_of(kind: str, body: bytes, topic: str, partition: int) -> list[dict[str, Any]]:
    """Return the rows of a block that are about one partition, opened; raises CorruptBlock."""
    columns, extra = decode_block(body)
    topics = extra.get("topics", [])
    if topic not in topics:
        return []
    rows = (columns["topic"] == topics.index(topic)) & (columns["partition"] == partition)
    return _opened(kind, {name: column[rows] for name, column in columns.items()}, extra)


def _opened(kind: str, columns: dict[str, Column], extra: dict[str, Any]) -> list[dict[str, Any]]:
    rows = list(_rows(columns, extra))
    if kind == DecisionKind.CHANGE_PARTITIONS:
        return [_change(row) for row in rows]
    if kind == DecisionKind.REFUSE_TRANSITION:
        return [_refusal(row, extra["reasons"]) for row in rows]
    return rows


def _rows(columns: dict[str, Column], extra: dict[str, Any]) -> Iterator[dict[str, Any]]:
    lists = {name: column.tolist() for name, column in columns.items()}
    for values in zip(*lists.values(), strict=True):
        row = dict(zip(lists, values, strict=True))
        if "topic" in row:
            row["topic"] = extra["topics"][row["topic"]]
        yield row


def _change(row: dict[str, Any]) -> dict[str, Any]:
    replicas = row["replicas"]
    for name in REPLICA_MASKS:
        row[name] = [broker for broker, held in zip(replicas, row[name], strict=True) if held]
    for name in ID_LISTS:
        row[name] = [broker for broker in row[name] if broker != NONE]
    row["actions"] = [str(action.name).lower() for action in Action if row["actions"] & action]
    row["rule"] = _RULES[row["rule"]]
    return row


def _refusal(row: dict[str, Any], reasons: list[str]) -> dict[str, Any]:
    states = PartitionState if row["replica"] == NONE else ReplicaState
    for name in ("current", "target"):
        row[name] = states(row[name]).name.lower()
    row["reason"] = reasons[row["reason"]]
    return row
