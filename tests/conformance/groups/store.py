"""A store of records that can fail, hold back, and end appends out of order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.bodies import GroupStep
from state.groups.image import GroupImage, WriteId
from state.groups.offset_rows import read_rows, rows_values
from state.protocol_errors import ProtocolError
from tests.conformance.verdict import NotUnderstoodError

Give = Callable[[dict[str, Any]], None]
Outcome = tuple[str, dict[str, Any]]
MOVED = ProtocolError.NOT_LEADER_OR_FOLLOWER


@dataclass(slots=True)
class Write:
    """A write that has not ended, or has."""

    id: WriteId
    group: str
    partition: int
    step: GroupStep
    log_offset: int | None = None
    late: bool = False


@dataclass(slots=True)
class Store:
    """`__consumer_offsets`.

    error: what appends end with: the next `errors_left`, or all if that is None. holds: they wait
    for a release. gone: there is no local log. tombstones: (group, topic and partition or
    None) in the order they were appended.
    """

    error: ProtocolError = ProtocolError.NONE
    errors_left: int | None = None
    holds: bool = False
    gone: bool = False
    held: list[Write] = field(default_factory=list)
    ended: list[Write] = field(default_factory=list)
    refused: set[WriteId] = field(default_factory=set)
    tombstones: list[tuple[str, tuple[str, int] | None]] = field(default_factory=list)
    records: int = 0

    def take(self, image: GroupImage, offset: int, body: bytes, give: Give) -> list[Outcome]:
        """Carry out a decision; return events that tell what came of it."""
        decided = image.begin(offset, orjson.loads(body))
        outcomes: list[Outcome] = []
        for step in decided.steps:
            if "records" not in step:
                self._reply(step, give)
            elif step.get("quiet"):
                self._tidy(decided.group, step)
                self._reply(step, give)
            else:
                write = Write((offset, step["write"]), decided.group, decided.partition, step)
                outcomes += self._append(image, write, give)
        return outcomes

    def _append(self, image: GroupImage, write: Write, give: Give) -> list[Outcome]:
        if self.holds:
            self.held.append(write)
            return []
        return self.end(image, write, MOVED if self.gone else self._next_error(), None, give)

    def _next_error(self) -> ProtocolError:
        if self.errors_left is None:
            return self.error
        self.errors_left -= 1
        return self.error if self.errors_left >= 0 else ProtocolError.NONE

    def _tidy(self, group: str, step: GroupStep) -> None:
        if self.gone or self.error:
            return
        for record in step["records"]:
            if record["value"] is None:
                offset = record["type"] == "offset"
                of = (record["topic"], record["partition"]) if offset else None
                self.tombstones.append((group, of))

    def _reply(self, step: GroupStep, give: Give) -> None:
        for reply in step["replies"]:
            after = tuple(reply.pop("after", (-1, -1)))
            assert after not in self.refused, "a reply rests on a write that was refused"
            give(reply)

    def release(
        self,
        image: GroupImage,
        request_id: str,
        error: ProtocolError,
        log_offset: int | None,
        give: Give,
    ) -> list[Outcome]:
        """End the held write that answers a request."""
        for write in self.held:
            if any(one["request_id"] == request_id for one in write.step["replies"]):
                self.held.remove(write)
                return self.end(image, write, error, log_offset, give)
        raise NotUnderstoodError(f"no append of {request_id} is held")

    def end(
        self,
        image: GroupImage,
        write: Write,
        error: ProtocolError,
        log_offset: int | None,
        give: Give,
    ) -> list[Outcome]:
        """Let a write succeed or fail."""
        if error:
            self.refused.add(write.id)
            return [("group_records_refused", image.refused(write.id, write.partition, error))]
        image.appended(write.id)
        self._reply(write.step, give)
        self.records += 1
        write.log_offset = log_offset
        self.ended.append(write)
        return self._overtaken(write.group)

    def _overtaken(self, group: str) -> list[Outcome]:
        """Tell of writes that stand in the log behind writes decided after them."""
        placed = [one for one in self.ended if one.group == group and one.log_offset is not None]
        found = []
        for early in placed:
            behind = any(
                later.id > early.id and later.log_offset < early.log_offset for later in placed
            )
            if behind and not early.late:
                early.late = True
                found.append(("group_records_overtaken", _late(early)))
        return found


def _late(write: Write) -> dict[str, Any]:
    change: Any
    [change] = write.step["changes"]
    return {
        "partition": write.partition,
        "group": write.group,
        "write": list(write.id),
        "producer_id": change.get("producer_id"),
        "offsets": rows_values(read_rows(change["offsets"])),
    }
