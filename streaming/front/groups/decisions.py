"""Carries decisions about groups out: records are appended, then their changes and replies hold.

Decisions come in order, and records of a partition are appended in that order, so no reply is sent
before all brokers in sync have its records. Those that were decided before a partition was taken
over are skipped: what counts is what was loaded from it since.

What goes wrong about a group costs that group only: a write that cannot be encoded, or is larger
than brokers are sure to take, is refused; a change that cannot be folded is skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.bodies import ChangeGroup, GroupStep, awaits_records
from state.groups.change_bodies import Change
from state.groups.image import BegunDecision, GroupImage, WriteId
from state.groups.records import COMMITTED_OFFSETS
from state.groups.replies import sync_fields
from state.protocol_errors import ProtocolError
from streaming.offsets.batches import (
    LARGEST_BATCH_BYTES,
    BatchRecord,
    bytes_at_most,
    encode_batch,
)
from streaming.offsets.leader import LeaderStopped, OffsetsLeader
from streaming.offsets.records import encode_record, offset_records
from streaming.process.counters import Counters

logger = logging.getLogger(__name__)

HandReplies = Callable[[Iterable[dict[str, Any]]], None]
Changed = Callable[[str, Sequence[Change]], None]
"""Takes changes of a group, once they are true."""
Refuse = Callable[[str, dict[str, Any]], None]
"""Appends that a write of a group is refused: takes the payload of group_records_refused."""

_BATCH_MAX_RECORDS = 5_000
_BATCH_BYTES = 1024 * 1024
"""How much is appended together, unless it is one write."""


@dataclass(slots=True)
class _Batch:
    """Records of one partition that are appended together, and the writes they belong to."""

    producer: tuple[int, int] | None
    records: list[BatchRecord] = field(default_factory=list)
    writes: list[tuple[WriteId, GroupStep]] = field(default_factory=list)
    size_bytes: int = 0

    def has_room(self, producer: tuple[int, int] | None, size_bytes: int) -> bool:
        """Return whether more records may come in; those of a transaction are in no batch of
        others.
        """
        return (
            self.producer is None
            and producer is None
            and len(self.records) < _BATCH_MAX_RECORDS
            and self.size_bytes + size_bytes <= _BATCH_BYTES
        )


class GroupDecisions:
    """Folds change_group decisions into an image and answers requests as they come true."""

    def __init__(
        self,
        leader: OffsetsLeader,
        answer: HandReplies,
        changed: Changed,
        refuse: Refuse,
        counters: Counters,
    ) -> None:
        """answer: hands replies to waiting requests. changed: takes the changes of a group before
        that. refuse: takes writes that cannot be appended.
        """
        self._leader = leader
        self._answer = answer
        self._changed = changed
        self._refuse = refuse
        self._counters = counters
        self._since: dict[int, int] = {}
        self._term = 0
        self._take_overs = 0
        self._early: list[tuple[int, bytes]] = []
        self._waiting: dict[WriteId, list[dict[str, Any]]] = {}
        self._refused: set[WriteId] = set()
        self.image = GroupImage(on_error=self._not_folded)

    def begin(self) -> None:
        """Forget all groups: partitions are taken over anew."""
        self.image = GroupImage(on_error=self._not_folded)
        self._waiting.clear()
        self.stop()

    def stop(self) -> None:
        """Take no decision until partitions are taken over again; what is appended goes on.

        A job that comes decides once more what it does not know to be decided, and records that
        were appended for it must not be appended again behind newer ones.
        """
        self._since.clear()
        self._early.clear()
        self._refused.clear()
        self._take_overs = 0
        self._term += 1

    @property
    def taken(self) -> Collection[int]:
        """Return the partitions whose decisions are taken; none while they are held back."""
        return () if self._take_overs else self._since.keys()

    def hold_back(self) -> int:
        """Hold decisions back until `taken_over` says which of them count; return the term."""
        self._take_overs += 1
        return self._term

    def taken_over(self, term: int, partitions: Iterable[int], offset: int) -> None:
        """Take decisions about these partitions from the event at this offset on."""
        if term != self._term:
            return
        self._since.update(dict.fromkeys(partitions, offset))
        self._take_overs -= 1
        early, self._early = self._early, []
        self.apply(early)

    def apply(self, decisions: Sequence[tuple[int, bytes]]) -> None:
        """Take change_group decisions (event offset, body) in order."""
        if self._take_overs:
            self._early.extend(decisions)
            return
        batches: dict[int, list[_Batch]] = {}
        for offset, body in decisions:
            decision: ChangeGroup = orjson.loads(body)
            partition = decision["partition"]
            since = self._since.get(partition)
            if since is None or offset < since:
                continue
            decided = self.image.begin(offset, decision)
            for step in decided.steps:
                if not awaits_records(step):
                    self._changed(decided.group, step["changes"])
                if "records" in step:
                    of_partition = batches.setdefault(partition, [])
                    self._add(of_partition, (offset, step["write"]), decided, step)
                else:
                    self._reply(step["replies"])
        for partition, of_partition in batches.items():
            for batch in of_partition:
                self._append(partition, batch)

    def _add(
        self, batches: list[_Batch], write: WriteId, decided: BegunDecision, step: GroupStep
    ) -> None:
        try:
            records = _encoded(decided.group, step)
        except Exception:
            logger.exception("records of group %r cannot be written", decided.group)
            self._not_written(write, decided, step, ProtocolError.UNKNOWN_SERVER_ERROR)
            return
        parts = _parts(records, step)
        size_bytes = max(map(bytes_at_most, parts))
        if size_bytes > LARGEST_BATCH_BYTES:
            logger.error("records of group %r are too large: %d bytes", decided.group, size_bytes)
            self._not_written(write, decided, step, ProtocolError.MESSAGE_TOO_LARGE)
            return
        producer = step.get("producer")
        named = None if producer is None else (producer[0], producer[1])
        for part in parts:
            _put(batches, named, part)
        batches[-1].writes.append((write, step))
        self._waiting[write] = []

    def _not_written(
        self, write: WriteId, decided: BegunDecision, step: GroupStep, error: ProtocolError
    ) -> None:
        """Have the machine take back what it changed, and answer what waits for it."""
        self._counters["unwritable_group_records"] += 1
        if not awaits_records(step):
            return
        self._refused.add(write)
        self._refuse(decided.group, self.image.refused(write, decided.partition, error))

    def _not_folded(self, group: str, change: Change, error: Exception) -> None:
        self._counters["broken_group_changes"] += 1
        logger.error("%s of group %r is passed over: %r", change["change"], group, error)

    def _append(self, partition: int, batch: _Batch) -> None:
        image = self.image
        try:
            done = self._leader.append(partition, encode_batch(batch.records, batch.producer))
        except LeaderStopped:
            return  # it is taken over again, and pending requests have failed
        if batch.producer is not None:
            self._leader.logs[partition].producers.committed(*batch.producer)
        done.add_done_callback(lambda future: self._appended(image, batch, future))

    def _appended(self, image: GroupImage, batch: _Batch, done: asyncio.Future[None]) -> None:
        if done.cancelled() or done.exception() is not None or image is not self.image:
            return
        for write, step in batch.writes:
            if awaits_records(step):
                group, _ = image.in_flight[write]
                image.appended(write)
                self._changed(group, step["changes"])
            later = self._waiting.pop(write, [])
            self._answer([*step["replies"], *later])

    def _reply(self, replies: Iterable[dict[str, Any]]) -> None:
        """Answer at once, but for those that count only if an earlier write is appended: after one
        that cannot be the machine is about to rebalance.
        """
        for reply in replies:
            offset, write = reply.get("after") or (-1, -1)
            waiting = self._waiting.get((offset, write))
            if waiting is not None:
                waiting.append(reply)
            elif (offset, write) in self._refused:
                refusal = {"error": ProtocolError.REBALANCE_IN_PROGRESS, **sync_fields()}
                self._answer([reply | refusal])
            else:
                self._answer([reply])


def _parts(records: Sequence[BatchRecord], step: GroupStep) -> Sequence[Sequence[BatchRecord]]:
    """Return what is appended as a whole: all records of a write, or each one that only tidies."""
    return [records] if awaits_records(step) else [[one] for one in records]


def _put(
    batches: list[_Batch], producer: tuple[int, int] | None, records: Sequence[BatchRecord]
) -> None:
    """Put records into the last batch, or into a new one."""
    size_bytes = bytes_at_most(records)
    if not (batches and batches[-1].has_room(producer, size_bytes)):
        batches.append(_Batch(producer))
    batches[-1].records.extend(records)
    batches[-1].size_bytes += size_bytes


def _encoded(group: str, step: GroupStep) -> list[BatchRecord]:
    found: list[BatchRecord] = []
    for record in step["records"]:
        time_ms = record["timestamp_ms"]
        if record["type"] == COMMITTED_OFFSETS:
            change = step["changes"][0]
            assert "offsets" in change, f"{change['change']} has no offsets to append"
            found.extend(offset_records(group, time_ms, change["offsets"]))
        else:
            found.append(BatchRecord(time_ms, *encode_record(group, record)))
    return found
