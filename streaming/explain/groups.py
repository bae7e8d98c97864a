"""What was decided about a consumer group, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from state.decisions import DecisionKind
from state.groups.change_kinds import ChangeKind
from state.protocol_errors import ProtocolError
from streaming.explain.changes import Said, by_event
from streaming.log.api import LogReader, LogRecord

_ROUTINE = frozenset(
    {ChangeKind.OFFSETS_COMMITTED, ChangeKind.TRANSACTION_PENDING, ChangeKind.TRANSACTION_COMPLETED}
)
"""Changes that go on all the time and move no member."""

_ROUTINE_ERRORS = frozenset({ProtocolError.MEMBER_ID_REQUIRED, ProtocolError.REBALANCE_IN_PROGRESS})
"""Answers that every member gets as it joins, or while others do."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """All that one event did to a group's members, in order, and what was answered."""

    offset: int
    time_ms: int
    changes: tuple[Said, ...]
    replies: tuple[Said, ...]


def group_changes_before(reader: LogReader, end: int, group: str) -> Iterator[GroupChange]:
    """Yield the events that changed a group, or at which it refused something, before offset `end`
    of the decision log, the latest first; commits of offsets alone are passed over.
    """
    for offset, time_ms, said in by_event(reader, end, lambda record: _about(record, group)):
        steps = [step for _, found in reversed(said) for body in found for step in body["steps"]]
        changes = tuple(change for step in steps for change in step.get("changes", ()))
        replies = tuple(reply for step in steps for reply in step.get("replies", ()))
        changed = any(change["change"] not in _ROUTINE for change in changes)
        if changed or any(map(_refuses, replies)):
            yield GroupChange(offset, time_ms, changes, replies)


def _refuses(reply: Said) -> bool:
    return bool(reply["error"]) and reply["error"] not in _ROUTINE_ERRORS


def sentence(change: dict[str, Any]) -> str:
    """Say what a change is, without the bytes that members carry."""
    name = str(change["change"]).replace("_", " ")
    said = [
        f"{field} {change[field]}"
        for field in ("member", "instance", "generation", "protocol", "leader", "new_member")
        if change.get(field) is not None
    ]
    if isinstance(change.get("members"), list):
        said.append(f"{len(change['members'])} members")
    why = f": {change['reason']}" if change.get("reason") else ""
    return f"{name}{why}" + (f" ({', '.join(said)})" if said else "")


def _about(record: LogRecord, group: str) -> list[Said]:
    # Looked for as it is written there: a quote in a group's id is escaped.
    if record.kind != DecisionKind.CHANGE_GROUP or orjson.dumps(group) not in record.payload:
        return []
    body = orjson.loads(record.payload)
    return [body] if body["group"] == group else []
