"""The cluster as decided so far: brokers, topics and partitions, for reading.

The image is folded from decisions that were persisted. It answers Metadata and FindCoordinator in
the front, and the full UpdateMetadata of a broker that starts in the job. It never decides
anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import orjson

from state.blocks import Column, decode_block, encode_block
from state.bodies import ForgetTopic, UpdateBrokers
from state.decisions import Action, DecisionKind, acts
from state.matrix import Bools, Int32s, among
from streaming.image.brokers import (
    RegisteredBroker,
    broker_node,
    endpoints,
    registered_brokers,
)
from streaming.image.partition_columns import PARTITION_COLUMNS, Keys, PartitionColumns
from streaming.image.racks import controller_rack
from streaming.wire.partition_rows import BrokerNode

_PARTITION = (1 << 32) - 1
_ROWS_AT_ONCE = 10_000
"""Two milliseconds' worth: the front answers heartbeats in between."""


class ClusterImage:
    """Columns of all partitions, sorted by topic number and partition, with a number per topic.

    Topic numbers are given in order of first sight, and closed up when most are of topics that
    went. A topic whose deletion has started is not there: brokers do not tell of it either;
    deleting has the names of those until they are gone. A topic that has to be observed again stays
    as it was until it is. stateless: (topic, partition) of those that are OFFLINE and have no row,
    since their state was gone when the image was made out of machines.
    """

    def __init__(self) -> None:
        """Start empty: no brokers, no topics, controller epoch -1."""
        self.controller_id = -1
        self.controller_epoch = -1
        self.epoch_zk_version = -1
        self.controller_node: BrokerNode | None = None
        self.brokers: dict[int, RegisteredBroker] = {}
        self.topic_ids: dict[str, str | None] = {}
        self.deleting: set[str] = set()
        self.stateless: set[tuple[str, int]] = set()
        self._outdated: set[str] = set()
        self.version = 0
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._names_by_id: dict[str, str] = {}
        self._partitions = PartitionColumns()

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self.keys)

    @property
    def keys(self) -> Keys:
        """int64[n]: topic number << 32 | partition, ascending."""
        return self._partitions.keys

    @property
    def columns(self) -> dict[str, Column]:
        """The PARTITION_COLUMNS as in change_partitions blocks, all of length n."""
        return self._partitions.by_name

    def apply(self, kind: str, body: bytes | memoryview) -> Sequence[str]:
        """Fold one persisted decision and return the topics that ceased to exist by it; kinds that
        change nothing visible are passed over.
        """
        return [topic for gone in self.apply_in_parts(kind, body) for topic in gone]

    def apply_in_parts(self, kind: str, body: bytes | memoryview) -> Iterator[Sequence[str]]:
        """Do what apply does in parts, none of which takes long; in between the image may be read,
        and has some of the decision's partitions as they were and some as they are.
        """
        match kind:
            case DecisionKind.CHANGE_PARTITIONS:
                yield from self._change_partitions(body)
            case DecisionKind.UPDATE_BROKERS:
                self.update_brokers(orjson.loads(body))
            case DecisionKind.FORGET_TOPIC:
                yield self._forgotten(orjson.loads(body))

    def _change_partitions(self, body: bytes | memoryview) -> Iterator[Sequence[str]]:
        columns, extra = decode_block(body)
        deleted = acts(columns, Action.DELETED)
        kept = columns if not deleted.any() else _select(columns, ~deleted)
        if len(kept["topic"]):
            for _ in self._upsert_in_parts(kept, extra["topics"], extra["topic_ids"]):
                yield ()
        numbers = np.unique(columns["topic"][deleted]).tolist()
        gone = [extra["topics"][number] for number in numbers]
        self.forget_topics(gone)
        self.deleting.update(gone)
        yield gone

    def _forgotten(self, forgotten: ForgetTopic) -> Sequence[str]:
        topic = forgotten["topic"]
        known_of = topic in self.deleting
        self.deleting.discard(topic)
        if forgotten.get("observed_again"):
            self._outdated.add(topic)
            return ()
        self.forget_topics([topic])
        return () if known_of else (topic,)

    def update_brokers(self, body: UpdateBrokers) -> None:
        """Replace the registered brokers; a complete update starts a new image of topics too."""
        self.controller_id = body["controller_id"]
        self.controller_epoch = body["controller_epoch"]
        self.epoch_zk_version = body["epoch_zk_version"]
        self.brokers = registered_brokers(body["brokers"])
        rack = controller_rack({id_: one.node.rack for id_, one in self.brokers.items()})
        node = {"id": self.controller_id, "rack": rack, "endpoints": body["controller_endpoints"]}
        self.controller_node = broker_node(node) if body["controller_endpoints"] else None
        self.version += 1
        if body["complete"]:
            self._clear_topics()

    def _clear_topics(self) -> None:
        self.topic_ids.clear()
        self.deleting.clear()
        self.stateless.clear()
        self._outdated.clear()
        self._numbers.clear()
        self._names.clear()
        self._names_by_id.clear()
        self._partitions = PartitionColumns()

    def upsert(
        self, columns: Mapping[str, Column], topics: list[str], ids: list[str | None]
    ) -> None:
        """Take rows of a change_partitions block: replace those that are there, add the others."""
        for _ in self._upsert_in_parts(columns, topics, ids):
            pass

    def _upsert_in_parts(
        self, columns: Mapping[str, Column], topics: list[str], ids: list[str | None]
    ) -> Iterator[None]:
        self.forget_topics(self._outdated.intersection(topics))
        if not topics:
            return
        if self.stateless:
            named = [topics[number] for number in columns["topic"].tolist()]
            self.stateless.difference_update(zip(named, columns["partition"].tolist(), strict=True))
        seen = len(self._names)
        numbers = np.array([self._number(*pair) for pair in zip(topics, ids, strict=True)])
        keys = numbers[columns["topic"]].astype(np.int64) << 32 | columns["partition"]
        fresh = {name: columns[name] for name in PARTITION_COLUMNS}
        if (numbers >= seen).all():
            self._partitions.append(keys, fresh)
            self.version += 1
            return
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self._partitions.upsert(keys[rows], {name: fresh[name][rows] for name in fresh})
            self.version += 1
            yield

    def _number(self, topic: str, topic_id: str | None) -> int:
        number = self._numbers.get(topic)
        if number is None:
            number = self._numbers[topic] = len(self._names)
            self._names.append(topic)
        if self.topic_ids.get(topic) != topic_id or topic not in self.topic_ids:
            self._names_by_id.pop(self.topic_ids.get(topic) or "", None)
            self.topic_ids[topic] = topic_id
            if topic_id is not None:
                self._names_by_id[topic_id] = topic
        return number

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Drop topics, those of them that are known, and their partitions."""
        forgotten = set(topics)
        self._outdated -= forgotten
        self.stateless -= {one for one in self.stateless if one[0] in forgotten}
        gone = np.zeros(len(self._names), dtype=bool)
        for topic in forgotten:
            number = self._numbers.pop(topic, None)
            if number is not None:
                gone[number] = True
                self._names_by_id.pop(self.topic_ids.pop(topic) or "", None)
        if not gone.any():
            return
        self._keep(~gone[self.keys >> 32])
        if len(self._names) > 2 * len(self._numbers):
            self._renumber()

    def _renumber(self) -> None:
        """Give the topics that are left the first numbers, in the order they have: the names of
        those that went are kept no longer.
        """
        numbers = sorted(self._numbers.values())
        self._names = [self._names[number] for number in numbers]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        topic = np.searchsorted(np.array(numbers, dtype=np.int64), self.keys >> 32)
        self._partitions.rekey(topic.astype(np.int64) << 32 | self.keys & _PARTITION)

    def forget_partition(self, topic: str, partition: int) -> None:
        """Drop one partition; its topic stays known."""
        number = self._numbers.get(topic)
        if number is not None:
            self._keep(self.keys != (number << 32 | partition))

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self._partitions.keep(kept)
        self.version += 1

    def topic_name(self, topic_id: str) -> str | None:
        """Return the name of the topic with this base64url id, None when nobody has it."""
        return self._names_by_id.get(topic_id)

    def topic_names(self) -> list[str]:
        """Return all topic names, ascending."""
        return sorted(self._numbers)

    def registered(self, ids: Int32s) -> Bools:
        """Return a mask shaped like ids: the broker is registered; -1 never is."""
        return among(ids, np.array(sorted(self.brokers), dtype=np.int32))

    def rows_of(self, topic: str) -> slice:
        """Return where a topic's partitions stand, ascending by partition; empty when it is
        unknown.
        """
        number = self._numbers.get(topic)
        if number is None:
            return slice(0, 0)
        start, end = np.searchsorted(self.keys, [number << 32, (number + 1) << 32])
        return slice(int(start), int(end))

    def row_of(self, topic: str, partition: int) -> int | None:
        """Return where a partition stands, None for one that is not there."""
        rows = self.rows_of(topic)
        at = rows.start + int(np.searchsorted(self.keys[rows] & _PARTITION, partition))
        found = at < rows.stop and int(self.keys[at] & _PARTITION) == partition
        return at if found else None

    def partitions_at_least(self, topic: str) -> int:
        """Return how many partitions a topic has, as far as those that are there show."""
        rows = self.rows_of(topic)
        return int(self.keys[rows.stop - 1] & _PARTITION) + 1 if rows.start < rows.stop else 0

    def topics_at(self, rows: npt.NDArray[np.bool_]) -> set[str]:
        """Return the names of the topics that the marked rows bool[n] belong to."""
        return {self._names[number] for number in np.unique(self.keys[rows] >> 32).tolist()}

    def topic_of_rows(self) -> tuple[Int32s, list[str]]:
        """Return (int32[n] index into the names, names) for all rows; never decreasing."""
        used, index = np.unique(self.keys >> 32, return_inverse=True)
        return index.astype(np.int32), [self._names[number] for number in used.tolist()]

    def snapshot(self) -> bytes:
        """Return the whole image as bytes, for another process."""
        topic, names = self.topic_of_rows()
        extra = {
            "topics": names,
            "topic_ids": [self.topic_ids[name] for name in names],
            "deleting": sorted(self.deleting),
            "stateless": sorted(self.stateless),
            "outdated": sorted(self._outdated),
            "brokers": [broker.registration() for _, broker in sorted(self.brokers.items())],
            "controller_id": self.controller_id,
            "controller_epoch": self.controller_epoch,
            "epoch_zk_version": self.epoch_zk_version,
            "controller_endpoints": endpoints(self.controller_node) if self.controller_node else [],
        }
        return encode_block({"topic": topic, **self.columns}, extra)

    @classmethod
    def from_snapshot(cls, data: bytes | memoryview) -> ClusterImage:
        """Return the image that `snapshot` wrote; raises CorruptBlock when it is not one."""
        columns, extra = decode_block(data)
        image = cls()
        image.update_brokers(
            {
                "brokers": extra["brokers"],
                "introduced": [],
                "complete": False,
                "controller_id": extra["controller_id"],
                "controller_endpoints": extra["controller_endpoints"],
                "controller_epoch": extra["controller_epoch"],
                "epoch_zk_version": extra["epoch_zk_version"],
            }
        )
        image.deleting.update(extra["deleting"])
        stateless = {(topic, partition) for topic, partition in extra["stateless"]}
        outdated = set(extra["outdated"])
        if len(columns) > 1:
            image.upsert(columns, extra["topics"], extra["topic_ids"])
        image._outdated = outdated
        image.stateless = stateless
        return image


def _select(columns: Mapping[str, Column], rows: npt.NDArray[np.bool_]) -> dict[str, Column]:
    return {name: column[rows] for name, column in columns.items()}
