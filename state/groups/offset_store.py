"""A group's offsets, opened only when they are needed.

Heartbeats and rebalances of a group pass its offsets on as they are stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import orjson

from state.groups.offset_rows import OffsetRow, OffsetRows
from state.topic_partition import TopicPartition

_NOTHING = b""


class OffsetStore:
    """Committed offsets, and offsets of transactions without a marker by producer id.

    Stored as JSON: [rows, [[producer id, rows]]], rows being [topic, [[partition, ...row]]] by
    topic, so that a topic's name stands there once.
    """

    __slots__ = ("_encoded", "_pending", "_rows")

    def __init__(self, encoded: bytes | None = None) -> None:
        """Take stored offsets; none, and so open at once, by default."""
        self._encoded: bytes | None = encoded
        self._rows: OffsetRows = {}
        self._pending: dict[int, OffsetRows] = {}

    def _open(self) -> None:
        if self._encoded is None:
            return
        if self._encoded:
            committed, pending = orjson.loads(self._encoded)
            self._rows = _flat(committed)
            self._pending = {producer: _flat(rows) for producer, rows in pending}
        self._encoded = None

    @property
    def rows(self) -> OffsetRows:
        """The committed offsets; what is changed in them is kept."""
        self._open()
        return self._rows

    @property
    def pending(self) -> dict[int, OffsetRows]:
        """The offsets of open transactions; what is changed in them is kept."""
        self._open()
        return self._pending

    @property
    def is_open(self) -> bool:
        """Whether the offsets have been looked at."""
        return self._encoded is None

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an offset nor an open transaction."""
        return not self.rows and not self.pending

    def of_topics(self, topics: Collection[str]) -> list[TopicPartition]:
        """Return the partitions of these topics that have an offset, committed or not yet."""
        held = {*self.rows, *(one for rows in self.pending.values() for one in rows)}
        return sorted(one for one in held if one[0] in topics)

    def remove(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Drop partitions; return those that had a committed offset, and those that had offsets of
        open transactions alone.
        """
        committed, unpublished = [], []
        for one in partitions:
            dropped = [rows.pop(one, None) is not None for rows in self.pending.values()]
            if self.rows.pop(one, None) is not None:
                committed.append(one)
            elif any(dropped):
                unpublished.append(one)
        return committed, unpublished

    def encoded(self) -> bytes:
        """Return the stored form; equal stores that were opened give equal bytes."""
        if self._encoded is not None:
            return self._encoded
        if not self._rows and not self._pending:
            return _NOTHING
        pending = [[producer, _by_topic(rows)] for producer, rows in sorted(self._pending.items())]
        return orjson.dumps([_by_topic(self._rows), pending])


def _by_topic(rows: OffsetRows) -> list[list[object]]:
    found: dict[str, list[list[object]]] = {}
    for (topic, partition), row in sorted(rows.items()):
        found.setdefault(topic, []).append([partition, *row])
    return [[topic, of_topic] for topic, of_topic in found.items()]


def _flat(by_topic: list[tuple[str, list[list[int]]]]) -> OffsetRows:
    return {
        (topic, values[0]): OffsetRow._make(values[1:])
        for topic, of_topic in by_topic
        for values in of_topic
    }
