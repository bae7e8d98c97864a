"""Decisions in words, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from state.blocks import Column, decode_block
from state.decisions import BLOCK_KINDS, DecisionKind, Rule
from streaming.log.api import LogRecord

NOBODY = -1


def count_of(record: LogRecord) -> int:
    """Return how many partitions or replicas a block is about; 1 for other decisions."""
    if record.kind not in BLOCK_KINDS:
        return 1
    columns, _ = decode_block(record.payload)
    return len(next(iter(columns.values())))


def leader_changes(record: LogRecord) -> Iterator[str]:
    """Yield a sentence for each partition of a change_partitions block that changes its leader."""
    columns, extra = decode_block(record.payload)
    for row in range(len(columns["partition"])):
        if columns["leader"][row] != columns["leader_before"][row]:
            yield _change(columns, extra, row)


def sentence(record: LogRecord) -> str:
    """Return a decision as one line, its first row when it has many."""
    if record.kind not in BLOCK_KINDS:
        return _json_sentence(record.kind, orjson.loads(record.payload))
    columns, extra = decode_block(record.payload)
    rows = len(next(iter(columns.values())))
    match record.kind:
        case DecisionKind.CHANGE_PARTITIONS:
            return _more(next(leader_changes(record), None) or _change(columns, extra, 0), rows)
        case DecisionKind.STOP_REPLICAS:
            stopped = f"replica on broker {columns['broker'][0]} stops"
            return _more(f"{_partition(columns, extra, 0)}: {stopped}", rows)
        case _:
            return _more(_spaced(record.kind), rows)


def _change(columns: Mapping[str, Column], extra: Mapping[str, Any], row: int) -> str:
    before, after = int(columns["leader_before"][row]), int(columns["leader"][row])
    isr = [member for member in columns["isr"][row].tolist() if member != NOBODY]
    rule = Rule(int(columns["rule"][row])).name.lower()
    moved = _broker(after) if before == after else f"{_broker(before)} -> {_broker(after)}"
    return f"{_partition(columns, extra, row)}: leader {moved} ({rule}), isr {isr}"


def _partition(columns: Mapping[str, Column], extra: Mapping[str, Any], row: int) -> str:
    return f"{extra['topics'][columns['topic'][row]]}-{columns['partition'][row]}"


def _broker(broker_id: int) -> str:
    return "none" if broker_id == NOBODY else str(broker_id)


def _more(text: str, rows: int) -> str:
    return text if rows == 1 else f"{text}, and {rows - 1} more"


def _spaced(kind: str) -> str:
    return kind.replace("_", " ")


def _json_sentence(kind: str, body: Mapping[str, Any]) -> str:
    match kind:
        case DecisionKind.UPDATE_BROKERS:
            ids = [broker["id"] for broker in body["brokers"]]
            return f"the brokers are {ids}, controller epoch {body['controller_epoch']}"
        case DecisionKind.ARM_TIMER:
            return f"arm timer {body['timer']}"
        case _:
            about = [str(body[name]) for name in ("api", "topic", "reason") if name in body]
            return " ".join([_spaced(kind), *about])
