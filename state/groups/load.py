"""What a partition of `__consumer_offsets` holds, out of its records in order.

Kafka's GroupMetadataManager.doLoadGroupsAndOffsets: the last record of a group or offset counts, a
null value ends it, and offsets of a transaction count from its marker on unless a later record of
the partition stands there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from state.groups.offset_rows import OffsetRow, OffsetRows, publish, rows_values
from state.topic_partition import TopicPartition

GroupPartition = tuple[str, TopicPartition]
"""A group and a partition that it commits."""


class Epochs(NamedTuple):
    """Of a producer of transactions, and of the coordinator that wrote its last marker; -1: none
    is known.
    """

    producer: int
    coordinator: int


NO_EPOCHS = Epochs(-1, -1)


class LoadedPartition:
    """The groups and offsets of one partition, as far as it was read.

    epochs: of the last batch of each producer that has one in transactions.
    """

    def __init__(self) -> None:
        """Begin before the first record."""
        self.epochs: dict[int, Epochs] = {}
        self._groups: dict[str, dict[str, Any]] = {}
        self._offsets: dict[GroupPartition, OffsetRow] = {}
        self._pending: dict[int, dict[GroupPartition, OffsetRow]] = {}

    def group_metadata(self, group: str, metadata: dict[str, Any] | None) -> None:
        """Take a group's record; metadata is as in group_observed, None for a tombstone."""
        if metadata is None:
            self._groups.pop(group, None)
        else:
            self._groups[group] = metadata

    def offset_commit(
        self, group: str, partition: TopicPartition, row: OffsetRow | None, producer: int | None
    ) -> None:
        """Take an offset's record, None for a tombstone; producer: of a transactional batch.

        The row's position is `loaded_position` of the first record of its batch.
        """
        rows = self._offsets if producer is None else self._pending.setdefault(producer, {})
        if row is None:
            rows.pop((group, partition), None)
        else:
            rows[group, partition] = row

    def marker(self, producer: int, *, committed: bool) -> None:
        """Take the marker that ends a producer's transaction."""
        rows = self._pending.pop(producer, {})
        if committed:
            publish(self._offsets, rows)

    def topics(self) -> set[str]:
        """Return the topics that there are offsets of."""
        rows = (self._offsets, *self._pending.values())
        return {topic for of in rows for _, (topic, _) in of}

    def observed(self, partition: int, epoch: int) -> Iterator[dict[str, Any]]:
        """Yield the payload of a group_observed event for each group, by name."""
        offsets: dict[str, OffsetRows] = {}
        for (group, of), row in self._offsets.items():
            offsets.setdefault(group, {})[of] = row
        pending: dict[str, dict[int, OffsetRows]] = {}
        for producer, rows in self._pending.items():
            for (group, of), row in rows.items():
                pending.setdefault(group, {}).setdefault(producer, {})[of] = row
        for group in sorted({*self._groups, *offsets, *pending}):
            yield {
                "partition": partition,
                "epoch": epoch,
                "group": group,
                "metadata": self._groups.get(group),
                "offsets": rows_values(offsets.get(group, {})),
                "pending": [
                    [producer, rows_values(rows)]
                    for producer, rows in pending.get(group, {}).items()
                ],
            }
