"""Says which events came of a step and what our machines decided about them, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from state.blocks import decode_block
from state.decisions import BLOCK_KINDS, DecisionKind, Rule
from streaming.log.decision_writer import record_id
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir

_LONGEST = 300


def log_end(data_dir: Path) -> int:
    """Return where the event log ends."""
    with EmbeddedLogReader(DataDir(data_dir).events) as reader:
        return reader.end_offset()


def set_aside(data_dir: Path) -> list[str]:
    """Return the reasons for which our machines have set events aside; there should be none."""
    with EmbeddedLogReader(DataDir(data_dir).decisions) as reader:
        records = reader.read(reader.start_offset(), reader.end_offset())
        return [str(one.payload) for one in records if one.kind == DecisionKind.SET_ASIDE]


def explained(data_dir: Path, start: int) -> list[str]:
    """Return a line for each event from an offset on, and for each decision about it."""
    folders = DataDir(data_dir)
    decisions: dict[int, list[str]] = {}
    with EmbeddedLogReader(folders.decisions) as reader:
        for record in reader.read(reader.start_offset(), reader.end_offset()):
            offset = record_id(record).event_offset
            decisions.setdefault(offset, []).extend(_decision(record.kind, record.payload))
    lines = []
    with EmbeddedLogReader(folders.events) as reader:
        for record in reader.read(start, reader.end_offset()):
            body = record.payload.decode(errors="replace")[:_LONGEST]
            lines.append(f"event {record.offset} {record.kind} {record.key} {body}")
            lines += [f"    {line}" for line in decisions.get(record.offset, ())]
    return lines


def _decision(kind: str, body: bytes) -> Iterator[str]:
    if kind not in BLOCK_KINDS:
        yield f"{kind} {body.decode(errors='replace')[:_LONGEST]}"
        return
    columns, extra = decode_block(body)
    names = extra.get("topics", [])
    for row in range(len(next(iter(columns.values())))):
        shown = {name: _shown(name, column[row].tolist()) for name, column in columns.items()}
        if "topic" in shown:
            shown["topic"] = names[shown["topic"]]
        if kind == DecisionKind.REFUSE_TRANSITION:
            shown["reason"] = extra["reasons"][shown["reason"]]
        yield f"{kind} " + " ".join(f"{name}={value}" for name, value in shown.items())


def _shown(name: str, value: Any) -> Any:
    if name == "rule":
        return Rule(value).name
    return orjson.dumps(value).decode() if isinstance(value, list) else value
