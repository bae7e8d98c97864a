"""Rows of a table as blocks of the events that are decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from state.blocks import Column, encode_block
from state.decisions import Decision, DecisionKind
from state.matrix import Int32s, Rows
from state.partitions.table import PartitionTable, Topic
from state.topic_ids import topic_id_to_text


class ClusterEventBlocks:
    """Files rows under the one event about the cluster."""

    topics: None = None

    def __init__(self, table: PartitionTable, offset: int) -> None:
        """Take the event's offset."""
        self._table = table
        self._offset = offset

    def offset_of(self, topic: str) -> int:
        """Return the offset of the event that changes a topic."""
        return self._offset

    def blocks(
        self, kind: DecisionKind, at: Rows, columns: dict[str, Column], extra: dict[str, Any]
    ) -> list[Decision]:
        """Return columns about rows `at` as a block."""
        topic, named = topic_column(self._table, at)
        block = encode_block({"topic": topic} | columns, named | extra)
        return [Decision(self._offset, kind, block)]


class TopicEventBlocks:
    """Files each topic's rows under the event about it.

    topics: those that the events are about, each with its event's offset.
    """

    def __init__(self, table: PartitionTable, topics: Mapping[str, int]) -> None:
        """Take the events' offsets by topic name."""
        self._table = table
        self.topics = topics

    def offset_of(self, topic: str) -> int:
        """Return the offset of the event that changes a topic."""
        return self.topics[topic]

    def blocks(
        self, kind: DecisionKind, at: Rows, columns: dict[str, Column], extra: dict[str, Any]
    ) -> list[Decision]:
        """Return columns about rows `at` as a block for each topic, with its offset."""
        topics = self._table.rows.topic[at]
        order = np.argsort(topics, kind="stable")
        used, starts = np.unique(topics[order], return_index=True)
        found = []
        for index, rows in zip(used.tolist(), np.split(order, starts[1:]), strict=True):
            topic = self._table.topics[index]
            of_topic = {"topic": np.zeros(len(rows), dtype=np.int32)}
            of_topic |= {name: column[rows] for name, column in columns.items()}
            block = encode_block(of_topic, _named([topic]) | extra)
            found.append(Decision(self.topics[topic.name], kind, block))
        return found


EventBlocks = ClusterEventBlocks | TopicEventBlocks
"""Where rows go that an event, or each of several, changes."""


def topic_column(table: PartitionTable, at: Rows) -> tuple[Int32s, dict[str, Any]]:
    """Return (int32[k] index into the names, {"topics": names, "topic_ids": ids}) for some rows of
    a table.
    """
    used, index = np.unique(table.rows.topic[at], return_inverse=True)
    return index.astype(np.int32), _named([table.topics[topic] for topic in used.tolist()])


def _named(topics: Sequence[Topic]) -> dict[str, Any]:
    return {
        "topics": [topic.name for topic in topics],
        "topic_ids": [topic_id_to_text(topic.topic_id) for topic in topics],
    }
