"""Finds writes of a batch that were made before a crash and followed by later writes of the batch.

A batch that is run again starts from its first write, but finds znodes as the last one left them
that was made before. Within one call the writer sees that; across calls it is found here. A topic
that somebody else wrote between two of the writes is known by the event that says so.
"""

from __future__ import annotations

from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.sinks.doubts import Doubts
from streaming.sinks.writes import STAGES, writes_of
from streaming.zk.chain import leaves
from streaming.zk.ops import WriteOp
from streaming.zk.types import ZNode
from streaming.zk.znodes.paths import entity_config_path, topic_path


class LaterWrites:
    """What the decisions of a batch write to each znode, and which topics they delete."""

    def __init__(self, batch: DecidedBatch, doubts: Doubts) -> None:
        """Remember the batch; its writes are listed when they are asked for first."""
        self._batch = batch
        self._doubts = doubts
        self._places: dict[int, int] = {}
        self._writes: dict[str, list[tuple[int, WriteOp]]] = {}
        self._deletions: dict[str, int] = {}  # topic -> place of the last one

    def explain(self, decision: SinkDecision, path: str, current: ZNode | None) -> bool:
        """Return whether a later decision leaves the znode as it is now (None: missing), or it is a
        topic's that somebody else wrote after us.
        """
        topic = _topic_of(path)
        if path == topic_path(topic) and self._doubts.was_written(topic, decision.offset):
            return True
        if not self._places:
            self._list()
        place = self._places[id(decision)]
        if current is None and self._deletions.get(topic, -1) > place:
            return True
        writes = self._writes.get(path, ())
        return any(later > place and leaves(op, current) for later, op in writes)

    def _list(self) -> None:
        for place, one in enumerate(self._batch.decisions):
            self._places[id(one)] = place
            if one.kind is DecisionKind.DELETE_TOPIC:
                self._deletions[one.topic] = place
            for stage in STAGES:
                for op, _ in writes_of(stage, one) if one.kind in stage else ():
                    self._writes.setdefault(op.path, []).append((place, op))


_TOPICS, _CONFIGS = topic_path(""), entity_config_path("topics", "")


def _topic_of(path: str) -> str:
    """Return the topic that a znode belongs to, "" when it is none's."""
    for above in (_TOPICS, _CONFIGS):
        if path.startswith(above):
            return path.removeprefix(above).partition("/")[0]
    return ""
