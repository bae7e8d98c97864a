"""The decisions of a batch as image and front may see them: without what was not written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import orjson

from state.blocks import encode_block
from state.decisions import Decision, DecisionKind
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.sinks.block_merging import merge_changes

VISIBLE = frozenset(
    {
        DecisionKind.UPDATE_BROKERS,
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.FORGET_TOPIC,
        DecisionKind.ASK_LOG_ENDS,
        DecisionKind.CHANGE_GROUP,
        DecisionKind.SET_PAUSE,
        DecisionKind.ARM_TIMER,
        DecisionKind.SET_ASIDE,
    }
)
"""What readers of the image, the clock, the counters, and who asks for log ends, need."""


def persisted(batch: DecidedBatch) -> Iterator[Decision]:
    """Yield the visible decisions that took effect.

    Partition changes that follow one another come as one block with the last row of each partition.
    """
    visible = [one for one in batch.decisions if one.kind in VISIBLE and not one.failed]
    for kind, alike in groupby(visible, key=lambda one: one.kind):
        if kind is not DecisionKind.CHANGE_PARTITIONS:
            yield from (_beside_lost_rows(one, batch.fenced_until) for one in alike)
            continue
        changes = list(alike)
        if len(changes) == 1 and not changes[0].lost.any():
            yield Decision(changes[0].offset, kind, changes[0].merged.body)
        elif (merged := merge_changes(changes)) is not None:
            columns, topics, topic_ids = merged
            header = {**changes[-1].content, "topics": topics, "topic_ids": topic_ids}
            yield Decision(changes[-1].offset, kind, encode_block(columns, header))


def _beside_lost_rows(one: SinkDecision, fenced_until: int) -> Decision:
    """Return a decision without rows. A load that was fenced keeps the topics that are known: its
    own are all lost.
    """
    body = one.merged.body
    if one.completes_load and one.offset < fenced_until:
        body = orjson.dumps({**one.content, "complete": False})
    return Decision(one.offset, one.kind, body)
