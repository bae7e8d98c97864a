"""Column blocks of decisions, opened into one dict per row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from state.blocks import decode_block
from state.change_columns import ID_LISTS, REPLICA_MASKS
from state.matrix import NONE


def rows_of(body: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return (rows, header) of a block; lists lose their padding, masks become lists of ids."""
    columns, extra = decode_block(body)
    lists = {name: column.tolist() for name, column in columns.items()}
    count = len(next(iter(lists.values())))
    rows = [{name: values[at] for name, values in lists.items()} for at in range(count)]
    return [_opened(row, extra) for row in rows], extra


def _opened(row: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    replicas = row.get("replicas", [])
    opened = {name: value for name, value in _unmasked(row, replicas)}
    if "topic" in row:
        opened["name"] = f"{extra['topics'][row['topic']]}-{row['partition']}"
        opened["topic"] = extra["topics"][row["topic"]]
        opened["topic_id"] = extra["topic_ids"][row["topic"]]
    if "reason" in row:
        opened["reason"] = extra["reasons"][row["reason"]]
    return opened


def _unmasked(row: dict[str, Any], replicas: list[int]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if name in REPLICA_MASKS:
            marked = zip(replicas, value, strict=True)
            yield name, [broker for broker, mark in marked if mark]
        elif name in ID_LISTS:
            yield name, [broker for broker in value if broker != NONE]
        else:
            yield name, value
