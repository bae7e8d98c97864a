"""Drops what depends on the failed write of a topic, within the batch that was to write it.

A topic that could not be written is forgotten and read again. What its machine decides from then on
depends on what the znode holds, and counts: nothing else would tell that it was not written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from state.decisions import DecisionKind
from streaming.sinks.batch import TOPIC_BASES, TOPIC_WRITES, DecidedBatch, SinkDecision

_DEPENDENT_WRITES = (TOPIC_WRITES - {DecisionKind.CREATE_TOPIC}) | {DecisionKind.DELETE_TOPIC}


class _Lives:
    """How often a topic was forgotten before an event."""

    def __init__(self, batch: DecidedBatch) -> None:
        self._forgotten: dict[str, list[int]] = {}
        for one in batch.of_kind(DecisionKind.FORGET_TOPIC):
            self._forgotten.setdefault(one.topic, []).append(one.offset)

    def of(self, topic: str, offset: int) -> tuple[str, int]:
        return topic, bisect_left(self._forgotten.get(topic, ()), offset)


def drop_topic_dependents(batch: DecidedBatch, decisions: Sequence[SinkDecision]) -> None:
    """Drop what decisions of a batch say about a topic on the event whose write of it failed, and
    after it until it is forgotten. What the same event wrote of the topic before stays.
    """
    lives = _Lives(batch)
    failed: dict[tuple[str, int], int] = {}
    for one in decisions:
        if one.kind in _DEPENDENT_WRITES and lives.of(one.topic, one.offset) in failed:
            one.failed = True
        if one.kind in TOPIC_BASES and one.failed:
            failed.setdefault(lives.of(one.topic, one.offset), one.offset)
    if not failed:
        return
    for one in decisions:
        if one.kind is DecisionKind.CHANGE_PARTITIONS:
            began = [failed.get(lives.of(topic, one.offset)) for topic in one.topics]
            one.lose_topics([first is not None and first <= one.offset for first in began])
