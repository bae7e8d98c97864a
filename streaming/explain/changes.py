"""What was decided about a partition, event by event, out of a decision log read backwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.decisions import BLOCK_KINDS, DecisionKind
from state.opened_decisions import open_rows_of
from state.reply_bodies import partition_errors
from streaming.log.api import LogReader, LogRecord
from streaming.log.decision_writer import record_id

_CHUNK_RECORDS = 2_000
_WITHOUT_PARTITIONS = frozenset({DecisionKind.REPORT_IMBALANCE})
_TOPIC_KINDS = frozenset(
    {
        DecisionKind.CREATE_TOPIC,
        DecisionKind.REWRITE_ASSIGNMENT,
        DecisionKind.MARK_TOPIC_DELETION,
        DecisionKind.UNMARK_TOPIC_DELETION,
        DecisionKind.DELETE_TOPIC,
        DecisionKind.FORGET_TOPIC,
        DecisionKind.COMPLETE_REASSIGNMENT,
        DecisionKind.REMOVE_REASSIGNMENTS,
        DecisionKind.REPLY,
    }
)

_NO_CHANGE = frozenset(
    {
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.REPLY,
        DecisionKind.REWRITE_ASSIGNMENT,
        DecisionKind.COMPLETE_REASSIGNMENT,
        DecisionKind.REPORT_REMAINING,
        DecisionKind.REPORT_AT_RISK,
        DecisionKind.PROPOSE_ELECTIONS,
    }
)
"""Kinds that by themselves are none: rows and replies may be, a look at a partition is not."""

Said = dict[str, Any]
Asked = Callable[[LogRecord], Collection[int]]
"""Gives the partitions that the event of a decision names."""


@dataclass(frozen=True, slots=True)
class Change:
    """All that one event's decisions say about a partition.

    decided: by kind, the rows and objects about it, opened.
    """

    partition: int
    offset: int
    time_ms: int
    decided: Mapping[str, list[Said]] = field(default_factory=dict)

    @property
    def row(self) -> Said | None:
        """The partition's row of change_partitions."""
        rows = self.decided.get(DecisionKind.CHANGE_PARTITIONS, [])
        return rows[0] if rows else None

    @property
    def names_partition(self) -> bool:
        """Whether a decision names the partition; the others are about the whole topic."""
        return any(
            kind in BLOCK_KINDS or any(_listed(one) is not None for one in found)
            for kind, found in self.decided.items()
        )

    @property
    def matters(self) -> bool:
        """Whether something changed or was refused, other than who was told again."""
        row = self.row
        written = row is not None and ("write" in row["actions"] or row["rule"] == "state_observed")
        others = self.decided.keys() - _NO_CHANGE
        replies = self.decided.get(DecisionKind.REPLY, [])
        refused = any(_refuses(one, self.partition) for one in replies)
        return written or refused or bool(others)


def error_of(reply: Said, partition: int) -> int:
    """Return the protocol error that a reply has for a partition, 0 for none."""
    return partition_errors(reply).get(partition, int(reply["error"]))


def _refuses(reply: Said, partition: int) -> bool:
    """Return whether a reply refuses something about the partition, not about the whole topic."""
    if _lists_nothing(reply):
        return True
    return bool(partition_errors(reply).get(partition))


def changes_before(
    reader: LogReader, end: int, topic: str, partition: int, asked: Asked
) -> Iterator[Change]:
    """Yield what was decided about a partition before offset `end` of the decision log, the latest
    event first.

    asked: which partitions the event of a reply is about. Raises LogError when the log is damaged.
    """
    for offset, time_ms, said in by_event(
        reader, end, lambda record: list(about(record, topic, partition, asked))
    ):
        yield Change(partition, offset, time_ms, _by_kind(said))


def recipients_of(change: Change, registered: Iterable[int] | None) -> tuple[int, ...]:
    """Return whom a change had to be sent to: everybody, or who gets LeaderAndIsr or StopReplica.

    registered: None when it is not known; then those of the latter whose replicas are online.
    """
    row = change.row
    named = {one["broker"] for one in change.decided.get("stop_replicas", [])}
    if row is not None:
        named |= set(row["recipients"])
    if registered is None:
        return tuple(sorted(named - set(() if row is None else row["offline"])))
    if row is not None and "update_metadata" in row["actions"]:
        named |= set(registered)
    return tuple(sorted(named & set(registered)))


def by_event(
    reader: LogReader, end: int, opened: Callable[[LogRecord], list[Said]]
) -> Iterator[tuple[int, int, list[tuple[str, list[Said]]]]]:
    """Yield (event offset, time in ms, [(kind, what `opened` makes of it)]) of the events about
    which something was opened, the latest first, the decisions of each from last to first.
    """
    offset, time_ms = -1, 0
    said: list[tuple[str, list[Said]]] = []
    for record in _backwards(reader, end):
        event = record_id(record).event_offset
        if event != offset:
            if said:
                yield offset, time_ms, said
            offset, said = event, []
        time_ms = record.time_ms
        found = opened(record)
        if found:
            said.append((record.kind, found))
    if said:
        yield offset, time_ms, said


def about(record: LogRecord, topic: str, partition: int, asked: Asked) -> Iterator[Said]:
    """Yield what a decision says about a partition: rows of its block, or its JSON object."""
    if topic.encode() not in record.payload or record.kind in _WITHOUT_PARTITIONS:
        return
    if record.kind in BLOCK_KINDS:
        yield from open_rows_of(record.kind, record.payload, topic, partition)
    elif record.kind in _TOPIC_KINDS:
        body = orjson.loads(record.payload)
        if body.get("topic") != topic:
            return
        # A request that is refused as a whole is answered without its partitions.
        unsaid = record.kind == DecisionKind.REPLY and _lists_nothing(body)
        if partition in asked(record) if unsaid else _covers(body, partition):
            yield body


def _lists_nothing(reply: Said) -> bool:
    """Return whether a reply refuses a request as a whole, and names none of its partitions."""
    return bool(reply["error"]) and reply.get("partitions") == []


def _covers(body: Said, partition: int) -> bool:
    """Return whether a topic's decision is about the partition too: it lists it, or lists none."""
    listed = _listed(body)
    return listed is None or partition in listed


def _listed(body: Said) -> set[int] | None:
    """Return the partitions that a topic's decision lists; None when it is about all of them."""
    if isinstance(body.get("assignment"), dict):
        return {int(one) for one in body["assignment"]}
    listed = body.get("partitions")
    if not isinstance(listed, list):
        return None
    return {one["partition"] if isinstance(one, dict) else one[0] for one in listed}


def _by_kind(said: Sequence[tuple[str, list[Said]]]) -> dict[str, list[Said]]:
    """Return what was said by kind, in the decisions' order; they were read from last to first."""
    merged: dict[str, list[Said]] = {}
    for kind, found in reversed(said):
        merged.setdefault(kind, []).extend(found)
    return merged


def _backwards(reader: LogReader, end: int) -> Iterator[LogRecord]:
    start = reader.start_offset()
    while end > start:
        begin = max(start, end - _CHUNK_RECORDS)
        yield from reversed(list(reader.read(begin, end)))
        end = begin
