"""One commit that needs no decision, and what the commits of a layout have in common."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from state.groups.offset_rows import UNLOGGED, OffsetRow
from state.groups.payloads.offsets import OffsetCommitRequested
from state.groups.payloads.requests import Heartbeat
from state.topic_partition import TopicPartition
from streaming.gateway.calls import Answer
from streaming.offsets.commit_batches import CommitBatch
from streaming.wire.commit_layouts import CommitLayout, Numbers
from streaming.wire.passing import answer_with_id_of

_NUMBERS = struct.Struct(">qi")
_NOBODY = -1


class Committer:
    """What the commits of one layout have in common.

    known_at: the version of KnownPartitions that had all of its partitions.
    """

    __slots__ = ("_batch", "heartbeat", "known_at", "partition", "request")

    def __init__(self, layout: CommitLayout, partition: int) -> None:
        """partition: of `__consumer_offsets`."""
        self.partition = partition
        self._batch: CommitBatch | None = None
        who = (layout.member, layout.instance, layout.generation)
        self.request = OffsetCommitRequested(
            "", partition, layout.group, layout.version, *who, None, ()
        )
        beats = layout.generation != _NOBODY
        self.heartbeat = Heartbeat(layout.group, *who) if beats else None
        self.known_at = -1

    def encode(self, layout: CommitLayout, numbers: Numbers, time_ms: int) -> bytes:
        """Return the batch of a commit; what those of its layout have in common is made for the
        first that is taken, as whoever may not commit can send any number of layouts.
        """
        if self._batch is None:
            self._batch = CommitBatch(layout.group, layout.partitions, layout.metadata)
        return self._batch.encode(numbers, time_ms)


@dataclass(slots=True, eq=False)
class Commit:
    """One commit; a DirectCommit of the image."""

    layout: CommitLayout
    numbers: Numbers
    time_ms: int
    request: bytes
    answer: Answer
    answered: bool = False

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """The partitions whose offsets it commits."""
        return self.layout.partitions

    def rows(self) -> dict[TopicPartition, OffsetRow]:
        """Return what it commits, at the position UNLOGGED."""
        found: dict[TopicPartition, OffsetRow] = {}
        layout = self.layout
        for at, numbers, text in zip(layout.partitions, self.numbers, layout.metadata, strict=True):
            offset, leader_epoch = _NUMBERS.unpack(numbers)
            found[at] = OffsetRow(offset, leader_epoch, text, self.time_ms, None, UNLOGGED)
        return found

    def end(self, error: int) -> None:
        """Answer, unless that was done."""
        if not self.answered:
            self.answered = True
            self.answer(answer_with_id_of(self.layout.answer(error), self.request))
