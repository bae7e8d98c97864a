"""The partitions that offsets may be committed of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from state.topic_partition import TopicPartition
from streaming.image.cluster_image import ClusterImage


class KnownPartitions:
    """The partitions that exist, but for those of topics that are excluded.

    version rises whenever something may have changed. excluded: by partition of
    `__consumer_offsets` the topics that ceased to exist and whose offsets are not gone yet; there
    may be new ones of these names.
    """

    def __init__(self) -> None:
        """Know none."""
        self.version = 0
        self.image: ClusterImage | None = None
        self.excluded: defaultdict[int, set[str]] = defaultdict(set)
        self._seen = -1
        self._numbers: dict[str, frozenset[int]] = {}

    def look_at(self, image: ClusterImage) -> None:
        """Take an image that may have changed."""
        if image is not self.image or image.version != self._seen:
            self.image, self._seen = image, image.version
            self._numbers.clear()
            self.version += 1

    def exclude(self, topics: Mapping[int, Collection[str]]) -> None:
        """Count topics as unknown for groups of these partitions of `__consumer_offsets`."""
        for partition, names in topics.items():
            self.excluded[partition].update(names)
        self.version += 1

    def include(self, topics: Mapping[int, Collection[str]]) -> None:
        """Count topics as the image has them again."""
        for partition, names in topics.items():
            self.excluded[partition].difference_update(names)
        self.version += 1

    def unknown(
        self, group_partition: int, partitions: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        """Return those that do not exist, for a group of a partition of `__consumer_offsets`."""
        excluded = self.excluded.get(group_partition, ())
        return [one for one in partitions if one[0] in excluded or one[1] not in self._of(one[0])]

    def _of(self, topic: str) -> Collection[int]:
        known = self._numbers.get(topic)
        if known is not None:
            return known
        rows = slice(0, 0) if self.image is None else self.image.rows_of(topic)
        if self.image is None or rows.start == rows.stop:
            return ()
        numbers = frozenset(self.image.columns["partition"][rows].tolist())
        self._numbers[topic] = numbers
        return numbers
