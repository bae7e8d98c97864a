"""The decisions of a batch as image and front may see them: without what was not written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from state.blocks import encode_block
from state.decisions import Decision, DecisionKind
from streaming.sinks.batch import DecidedBatch
from streaming.sinks.block_merging import merge_changes

VISIBLE = frozenset(
    {
        DecisionKind.UPDATE_BROKERS,
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.FORGET_TOPIC,
        DecisionKind.CHANGE_GROUP,
        DecisionKind.SET_PAUSE,
        DecisionKind.ARM_TIMER,
        DecisionKind.SET_ASIDE,
    }
)
"""What readers of the image, the clock and the counters in the front need."""


def persisted(batch: DecidedBatch) -> Iterator[Decision]:
    """Yield the visible decisions that took effect.

    Partition changes that follow one another come as one block with the last row of each partition.
    """
    visible = [one for one in batch.decisions if one.kind in VISIBLE and not one.failed]
    for kind, alike in groupby(visible, key=lambda one: one.kind):
        if kind is not DecisionKind.CHANGE_PARTITIONS:
            yield from (Decision(one.offset, kind, one.merged.body) for one in alike)
            continue
        changes = list(alike)
        if len(changes) == 1 and not changes[0].lost.any():
            yield Decision(changes[0].offset, kind, changes[0].merged.body)
        elif (merged := merge_changes(changes)) is not None:
            columns, topics, topic_ids = merged
            header = {**changes[-1].content, "topics": topics, "topic_ids": topic_ids}
            yield Decision(changes[-1].offset, kind, encode_block(columns, header))
