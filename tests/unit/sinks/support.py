"""Batches for the sinks' unit tests, out of real machines."""

from __future__ import annotations

import numpy as np

from state.decisions import DecisionKind
from streaming.image.cluster_image import ClusterImage
from streaming.sinks.batch import DecidedBatch, LostWrite, SinkDecision, decided_batch
from streaming.sinks.persisted import persisted
from streaming.sinks.plan import Planner
from streaming.zk.types import ZNode
from streaming.zk.znodes import partition_state_bytes
from tests.fixtures.story import LISTENER, Fold, Story


class Job:
    """A story, its machines, and an image that follows what was persisted."""

    def __init__(self, slots: int = 2) -> None:
        self.story = Story()
        self.fold = Fold(slots)
        self.image = ClusterImage()
        self.batches = 0
        self._folded = 0

    def decide(self) -> DecidedBatch:
        """Fold what was written since the last call: one batch."""
        events = self.story.events[self._folded :]
        self._folded = len(self.story.events)
        self.batches += 1
        return decided_batch(self.batches, self.fold.folded(events))

    def persist(self, batch: DecidedBatch) -> DecidedBatch:
        """Let the image fold a batch as it is after its writes."""
        for one in persisted(batch):
            self.image.apply(one.kind, one.body)
        return batch


def planner_of(image: ClusterImage, listener: str = LISTENER) -> Planner:
    """Return a planner of a node that leads nothing."""
    return Planner(image, listener, announced_topic=None)


def changes(batch: DecidedBatch) -> list[SinkDecision]:
    return batch.of_kind(DecisionKind.CHANGE_PARTITIONS)


def lose(batch: DecidedBatch, topic: str, partition: int, at: int = 0) -> int:
    """Lose one partition's row of the at-th change_partitions that has it; return its offset."""
    having = []
    for one in changes(batch):
        names = np.array(one.topics)[one.columns["topic"]]
        rows = (names == topic) & (one.columns["partition"] == partition)
        if rows.any():
            having.append((one, rows))
    one, rows = having[at]
    one.lost |= rows
    return one.offset


def refuse_creation(batch: DecidedBatch) -> None:
    """Let the batch's one creation meet a topic of that name."""
    (created,) = batch.of_kind(DecisionKind.CREATE_TOPIC)
    created.failed = True
    there = ZNode(b"{}", 0, 1, 1, 1, 0)
    topic = created.topic
    batch.lost_writes.append(LostWrite(created.offset, created.kind, topic, None, there))


def state_znode(leader: int, epoch: int, isr: list[int], version: int) -> ZNode:
    data = partition_state_bytes([leader], [epoch], [isr], 1, [0])[0]
    return ZNode(data, version, 5, 6, 7, 0)
