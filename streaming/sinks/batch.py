"""The decisions of one micro-batch on their way through the sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import orjson

from state.blocks import Column, decode_block
from state.decisions import BLOCK_KINDS, DecisionKind
from state.merge import MergedDecision
from streaming.decided_rows import FoldedBatch
from streaming.zk.types import ZNode

TOPIC_WRITES = frozenset(
    {
        DecisionKind.CREATE_TOPIC,
        DecisionKind.REWRITE_ASSIGNMENT,
        DecisionKind.COMPLETE_REASSIGNMENT,
    }
)
"""Decisions that write a topic's znode."""

TOPIC_BASES = TOPIC_WRITES | {DecisionKind.MARK_TOPIC_DELETION}
"""Topic-level writes; if one fails, every decision that depends on it is dropped."""

PARTITION_CHANGES = frozenset({DecisionKind.CHANGE_PARTITIONS, DecisionKind.STOP_REPLICAS})
"""Blocks whose rows are written or sent to brokers."""


@dataclass(frozen=True, slots=True)
class LostWrite:
    """A write that did not happen: it met other content, or was rejected.

    offset: of the event the write was decided on. current: what the znode holds, None when it is
    missing or may not be read. creates: it was to create the partition's state. rejected: why
    ZooKeeper takes no such write, whatever the znode holds, "" where it met other content.
    topic_id: None where the topic has none, or no partition is named.
    """

    offset: int
    kind: DecisionKind
    topic: str | None
    partition: int | None
    current: ZNode | None
    creates: bool = False
    rejected: str = ""
    topic_id: str | None = None

    @property
    def tells_producer_ids(self) -> bool:
        """Whether it tells which block of producer ids there is; one that may not be read does
        not.
        """
        known = self.current is not None or not self.rejected
        return self.kind is DecisionKind.WRITE_PRODUCER_ID_BLOCK and known


class BlockHeader(TypedDict):
    """What every block about partitions says beside its columns, whose topics are indexes."""

    topics: list[str]
    topic_ids: list[str | None]


@dataclass(slots=True)
class SinkDecision:
    """A decision with what the sinks learn about it.

    columns and content: a block's columns and header (`BlockHeader`, if it is about partitions), or
    {} and the JSON body of its kind (`state.bodies`).
    lost bool[n]: rows of a block that are not true, because a write did not happen (conflict or
    fenced), so that nobody is told of them. failed: a JSON decision whose write did not happen.
    """

    merged: MergedDecision
    columns: dict[str, Column]
    content: Any
    lost: npt.NDArray[np.bool_]
    failed: bool = False

    @property
    def kind(self) -> DecisionKind:
        """The decision's kind."""
        return self.merged.kind

    @property
    def offset(self) -> int:
        """The offset of the event it answers."""
        return self.merged.offset

    @property
    def topics(self) -> list[str]:
        """The names of the topics that a block is about."""
        header: BlockHeader = self.content
        return header["topics"]

    @property
    def topic_ids(self) -> list[str | None]:
        """The ids of these topics; None for one that has none."""
        header: BlockHeader = self.content
        return header["topic_ids"]

    @property
    def topic(self) -> str:
        """The topic that a JSON decision of a kind about one topic is about."""
        topic: str = self.content["topic"]
        return topic

    def lose_topics(self, gone: Sequence[bool]) -> None:
        """Lose the rows of some topics of a block; gone: which of `topics`."""
        self.lost |= np.array(gone, dtype=bool)[self.columns["topic"]]

    @property
    def epoch_zk_version(self) -> int | None:
        """The version of /controller_epoch it was decided under; None of a kind that says none."""
        version: int | None = self.content.get("epoch_zk_version")
        return version

    @property
    def fence(self) -> int:
        """The version of /controller_epoch that its writes need."""
        version = self.epoch_zk_version
        assert version is not None, f"{self.kind} writes nothing"
        return version

    @property
    def completes_load(self) -> bool:
        """Whether it ends a fresh load of the cluster: nothing told before counts."""
        return self.kind is DecisionKind.UPDATE_BROKERS and bool(self.content["complete"])


@dataclass(slots=True)
class DecidedBatch:
    """All decisions of a micro-batch in canonical order, with the times of their events in ms.

    batch_id: of the query's micro-batch, None in a head start. end_offset: one past the last event
    folded. fenced: versions of /controller_epoch under which some of it was decided, and that were
    replaced before it was written. written_at_ms: wall clock.
    """

    batch_id: int | None
    decisions: list[SinkDecision]
    time_ms: dict[int, int]
    end_offset: int
    written_at_ms: int = 0
    lost_writes: list[LostWrite] = field(default_factory=list)
    fenced: set[int] = field(default_factory=set)
    rung: Mapping[str, int] = field(default_factory=dict)  # as in FoldedBatch

    def of_kind(self, kind: DecisionKind) -> list[SinkDecision]:
        """Return the decisions of one kind, in order."""
        return [decision for decision in self.decisions if decision.kind is kind]

    @property
    def fenced_until(self) -> int:
        """The first event that was not decided on by a controller that is replaced by now."""
        if not self.fenced:
            return 0
        later = self.end_offset
        for one in reversed(self.decisions):
            version = one.epoch_zk_version
            if version in self.fenced:
                break
            later = later if version is None else one.offset
        return later

    @property
    def loaded_at(self) -> int:
        """The last event that completed a fresh load of the cluster; 0 when none did."""
        return max((one.offset for one in self.decisions if one.completes_load), default=0)

    @property
    def is_loaded(self) -> bool:
        """Whether it completes a load by a controller that is not replaced."""
        return self.loaded_at > 0 and self.loaded_at >= self.fenced_until

    @property
    def conflicts(self) -> list[LostWrite]:
        """The writes that met other content."""
        return [one for one in self.lost_writes if not one.rejected]

    @property
    def rejected(self) -> list[LostWrite]:
        """The writes that ZooKeeper rejected."""
        return [one for one in self.lost_writes if one.rejected]

    def refused_topics(self) -> list[SinkDecision]:
        """Return the writes of topic znodes, or of marks for deletion, that met another topic or
        another assignment, or were rejected: the first of each topic.
        """
        met = {(one.offset, one.topic) for one in self.lost_writes if one.partition is None}
        found: dict[str, SinkDecision] = {}
        for one in self.decisions:
            refused = one.kind in TOPIC_BASES and (one.offset, one.topic) in met
            if refused and one.offset >= self.fenced_until:
                found.setdefault(one.topic, one)
        return list(found.values())


def decided_batch(batch_id: int | None, folded: FoldedBatch) -> DecidedBatch:
    """Return what was folded together with its decisions opened."""
    decisions = opened(folded.decisions)
    return DecidedBatch(batch_id, decisions, folded.time_ms, folded.end_offset, rung=folded.rung)


def opened(decisions: Iterable[MergedDecision]) -> list[SinkDecision]:
    """Return decisions with their bodies decoded."""
    return [_open(decision) for decision in decisions]


def _open(decision: MergedDecision) -> SinkDecision:
    if decision.kind in BLOCK_KINDS:
        columns, header = decode_block(decision.body)
        count = len(next(iter(columns.values())))
        return SinkDecision(decision, columns, header, np.zeros(count, dtype=bool))
    # What groups decide is carried out by the front: no sink looks into it.
    body = {} if decision.kind is DecisionKind.CHANGE_GROUP else orjson.loads(decision.body)
    return SinkDecision(decision, {}, body, np.zeros(0, dtype=bool))
